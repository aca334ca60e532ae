// Package process has properties of the server's process: its processor time, its limit of open files, and the score
// by which Linux chooses a process to kill when memory runs out.
package process
