// Package server has the commands that tell about the server and steer it: CONFIG, COMMAND, SLOWLOG and LATENCY.
package server
