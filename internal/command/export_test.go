package command

// UnusedNotes returns the patterns of notes that match no argument of their command.
func UnusedNotes(t *Table) map[string][]string {
	unused := map[string][]string{}
	for name, notes := range argumentNotes() {
		cmd := t.Original(name)
		if cmd == nil {
			unused[name] = []string{"no such command"}
			continue
		}
		p := syntaxParser{cmd: cmd, words: syntaxWords(cmd.Syntax)}
		args, err := p.sequence()
		if err != nil {
			unused[name] = []string{err.Error()}
			continue
		}
		for _, note := range annotate(args, notes) {
			unused[name] = append(unused[name], note.pattern)
		}
	}
	return unused
}

var Kinds = kinds
