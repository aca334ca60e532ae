package event

// The kinds of events of executions.
const (
	ExecutionCreated  = "created" // or a finished execution became unfinished again
	ExecutionFinished = "finished"
	ExecutionRemoved  = "removed"
)

// Execution is the JSON message about an execution on the channels keys.Agent and keys.Instances.
type Execution struct {
	Kind string `json:"event"`
	// Serial numbers the changes of executions. PERPER.EXECUTIONS and PERPER.NEXT return the last one that they
	// include.
	Serial    int64  `json:"serial"`
	Execution string `json:"execution"`
	Instance  string `json:"instance"`
	Delegate  string `json:"delegate"`
}
