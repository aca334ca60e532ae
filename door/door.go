// Package door is the seam between the server and foreign protocols. A Session is one client of the server without a
// transport, and a Client is how a program, or a door, executes commands in it.
package door
