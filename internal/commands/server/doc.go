// Package server has the commands that show and control the server: INFO, CONFIG, COMMAND, SLOWLOG, LATENCY, MEMORY,
// DEBUG, SAVE and its variants, SHUTDOWN and MODULE.
package server
