// Package process is the process that the server runs in: how much processor time it has used, how many files it may
// open, and the score by which Linux chooses a process to kill when memory runs out.
package process
