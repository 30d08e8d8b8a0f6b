// Package meter rewrites a module so that running it costs fuel and depth.
//
// The promise. Code runs only after it was paid for, or owes less than one function's worth:
// fuel is a global that falls at function entries, loop heads and in long branches, and is
// looked at in every entry and every loop head, so nothing endless can run without the host
// being asked ([ImportRefuel]). Instructions on whole memories and tables pay for their
// length, taken as 64 bits, before they act, and those on memories act in pieces of at most
// [PieceBytes] (S10). Call frames are bounded in bytes ([ImportOverflow], S11). What a run
// costs depends on the module and on what the host answers, never on how much fuel is handed
// out at a time. The same module and options give the same bytes.
//
// The condition. The original must have been read by [wasm.Read] without problems AND
// validated completely, types included, before it comes here: what is added could make an
// index or a type right that was wrong, and a module could then set its own fuel (S2).
// Nothing is validated here. Only what a caller lists stays exported.
//
// The package refuses to know what a unit of fuel is worth in time, who is given how much,
// and which engine runs the result.
package meter
