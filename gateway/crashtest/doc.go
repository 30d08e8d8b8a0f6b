// Package crashtest kills the gateway while it works and looks at what is left.
//
// It has no code but tests. They start the real server as a process of its own, load it over its
// sockets, end it with SIGKILL at points nobody chose, start it again on the same directory
// and hold it to the fourth promise: recorded before it acts, answered after it is recorded.
// The origin that the guests call is in the test's own process, and it writes down each request
// before it answers: what it saw, happened.
//
// Every way to die is tried in both durabilities of the audit: the end of the process is no loss of
// power, and neither of them may lose anything that was answered.
//
// ECOTONE_CRASH_ROUNDS is how often it is killed, ECOTONE_CRASH_SEED repeats a run's choices (not its
// timing).
package crashtest
