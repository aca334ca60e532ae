// Package server has the commands that tell about the server and steer it: INFO, CONFIG, COMMAND, SLOWLOG, LATENCY,
// MEMORY, DEBUG, SAVE and its like, SHUTDOWN and MODULE.
package server
