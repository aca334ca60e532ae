package event

// The kinds of events of executions.
const (
	ExecutionCreated  = "created" // or it was finished and is not any more
	ExecutionFinished = "finished"
	ExecutionRemoved  = "removed"
)

// Execution is the JSON message about an execution on the channels keys.Agent and keys.Instances.
type Execution struct {
	Kind string `json:"event"`
	// Serial numbers the changes of executions. PERPER.EXECUTIONS and PERPER.NEXT say up to which one they know.
	Serial    int64  `json:"serial"`
	Execution string `json:"execution"`
	Instance  string `json:"instance"`
	Delegate  string `json:"delegate"`
}
