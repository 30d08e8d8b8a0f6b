// Package memory makes the linear memories of guests, and puts them back.
//
// A [Region] is one guest's memory: address space reserved once, committed as the guest grows.
// An [Image] is a frozen copy of a region. A region mapped over an image begins with the
// image's bytes, shares every page it has not written, and [Region.Restore] makes it byte for
// byte the image again at the price of the pages that were written.
//
// Beside host/jail this is the only package with unsafe and system calls. What it relies on,
// and everyone who changes it must keep:
//
//  1. One owner. A region is used by one goroutine at a time, and only its owner closes it,
//     after the guest's call has returned (S1). The engine's own Free does nothing, because the
//     engine calls it when it pleases; bytes of a region are never used after Close.
//  2. Fixed base. A region never moves, so that a slice the engine holds stays what it was.
//  3. An image cannot change: its file is sealed against writing, growing, shrinking and
//     further seals before anything is mapped from it, and closed on exec (S12). Therefore no
//     access to a mapping can fault, and what is copied back is what was captured.
//  4. A page of a mapped region either is the image's own page or is private to the region,
//     in memory or swapped out. Restore finds the private ones by exactly that difference, and
//     replaces all of them; where the kernel cannot tell, it drops all of them. Huge pages and
//     merging of equal pages would blur the difference and are off for these mappings. Nothing is
//     looked for where it is already known: a small region is compared whole, and of one whose
//     guest ran on one thread and without a page fault ([Region.Enter]) the private pages are
//     those of the time before.
//  5. An image outlives the regions mapped over it: it is unmapped with the last of them.
//  6. A region that grew after it was mapped has pages that no image knows. Restore refuses it.
//
// The package refuses to know the engine and what the bytes mean. Where the platform has no
// images, regions are plain memory, [Region.Capture] says so, and nothing else differs.
package memory
