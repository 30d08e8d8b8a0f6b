package warm

import "reflect"

const (
	deepest  = 6 // a type that holds itself ends here
	elements = 4 // in a sample's slices
)

// Sample is a value of a type in which nothing is empty: every pointer is set, slices and maps
// have elements, texts have bytes. Interfaces, functions and channels stay nil, unexported
// fields zero.
func Sample(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	fill(v, deepest)
	return v
}

func fill(v reflect.Value, depth int) {
	if depth == 0 {
		return
	}
	switch t := v.Type(); t.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(42)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(42)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(4.25)
	case reflect.String:
		v.SetString("sample")
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, elements, elements))
		for i := range elements {
			fill(v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range min(v.Len(), elements) {
			fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		fill(key, depth-1)
		fill(value, depth-1)
		v.Set(reflect.MakeMap(t))
		if key.Comparable() {
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, depth-1)
			}
		}
	}
}
