package json

import "github.com/atomredis/atomredis/internal/config"

// autoCreate says whether commands that set values make the objects that their paths lead through.
const autoCreate = "json-auto-create-deep-paths"

func init() {
	config.Register(config.Directive{Name: autoCreate, Default: "no", Check: config.CheckYesNo, AtStart: true})
}
