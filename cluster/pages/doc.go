// Package pages takes pages of mapped files out of this process' memory.
//
// Such pages are the kernel's cache of a file. One that was read once counts as memory of the
// process until it ends, and is among the last that the kernel takes when memory is short; a
// released one is among the first, and who reads it again finds it as long as it is cached. The
// pages of a program are most of what an idle node has: the start alone reads 60 MiB of them, much
// of that because each fault brings its neighbors.
//
// The other side: where memory is short and the disk of the program hangs, a thread may wait for a page
// that it would still have had.
//
// What does not work leaves pages where they are, which is no error.
package pages
