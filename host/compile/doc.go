// Package compile turns modules into native code without letting a module, its author or its
// size near the process that serves.
//
// It promises that a module is validated and compiled in a confined child process of the same
// binary (bytes in, bytes out, empty environment, bounded in address space, processor and wall
// time); that what the child made is kept under a keyed MAC which is checked before every load;
// that a missing, damaged or foreign artifact is "not ready" and is made again in the
// background; and that the calling process itself never compiles (S14).
//
// It refuses to know what a biome is, who uploaded it, and how instances are made.
package compile
