// Package wasi is WASI preview 1 over the boundary: what a guest believes to be a process with
// descriptors and files is an invocation with an input, an output, a log and the session's workspace.
//
// There are three sets of doors. [Native] is the subset that a native biome has so that language
// runtimes start: it reaches nothing. [Bare] is all of preview 1 with nothing behind it, for plug-ins of
// other interfaces. [Full] is what programs written for WASI alone run on: standard input is the
// invocation's input, standard output its output, standard error the log; descriptor 3 is the
// workspace, if the session has one, and everything done with it is a host call of package boundary
// (file_stat, file_read, file_replace …), with its checks, price, labels and receipt. No file is
// opened here and no path is walked.
//
// What is written to a file is kept here until the file is closed or synchronised, or the run ends with
// success, and then replaces exactly the version that was opened (M4). A run that fails leaves what it had
// closed or synchronised.
//
// All state is one table in the invocation, made by the first call that needs it. Calls belong to the
// guest's goroutine. The package refuses to know where the workspace is.
package wasi
