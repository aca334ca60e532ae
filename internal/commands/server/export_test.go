package server

// For the tests in package server_test, which need all commands.
type Change = change

var (
	History          = commandHistory
	InternalCommands = internalCommands
)
