package keys

// Agent returns the channel on which the changes of an agent's executions are told, as JSON.
func Agent(agent string) string { return Of(Executions, ":agent:") + agent }

// Instances returns the channel on which is told, in the same way, of the executions that say that an instance of an
// agent runs.
func Instances(agent string) string { return Of(Executions, ":instances:") + agent }

// Items returns the channel on which the keys of new items of a stream are told, in decimal.
func Items(stream string) string { return Of(stream, ":items") }
