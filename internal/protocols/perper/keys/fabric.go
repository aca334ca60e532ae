package keys

// Agent returns the channel for changes of an agent's executions, as JSON.
func Agent(agent string) string { return Of(Executions, ":agent:") + agent }

// Instances returns the channel for changes of the executions that mark running instances of an agent, as JSON.
func Instances(agent string) string { return Of(Executions, ":instances:") + agent }

// Items returns the channel for the keys of new items of a stream, in decimal.
func Items(stream string) string { return Of(stream, ":items") }
