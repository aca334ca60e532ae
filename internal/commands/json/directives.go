package json

import "github.com/atomredis/atomredis/internal/config"

// autoCreate says whether commands that set values create missing objects on their paths.
const autoCreate = "json-auto-create-deep-paths"

func init() {
	config.Register(config.Directive{Name: autoCreate, Default: "no", Check: config.CheckYesNo, AtStart: true})
}
