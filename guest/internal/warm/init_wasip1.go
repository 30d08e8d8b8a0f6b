package warm

func init() { Runtime() }
