package api

import "time"

// SetExecution limits the time of a request's commands.
func (a *API) SetExecution(d time.Duration) { a.execution = d }
