// A whole check: many sequences, until enough commands or differences.

package differential

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options configure a check.
type Options struct {
	// Language is the language of the commands; nil stands for Commands.
	Language *Language
	// A is the address of the reference, B that of the server under test.
	A, B string
	// Seed is the seed of the first sequence; each further one adds one.
	Seed uint64
	// Commands is the total number of commands, SequenceLength that of one sequence.
	Commands, SequenceLength int
	// Dir is the directory for files of differences; they are named after their seeds.
	Dir string
	// KeepGoing is the number of differences after which the check ends.
	KeepGoing int
	// Log receives the report.
	Log io.Writer
}

// Check compares the two servers and returns the number of sequences that differed.
func Check(o Options) (int, error) {
	if o.Language == nil {
		o.Language = &Commands
	}
	r := NewRunner(*o.Language, o.A, o.B)
	defer r.Close()
	start := time.Now()
	found, sequences, commands := 0, 0, 0
	for seed := o.Seed; commands < o.Commands && found < o.KeepGoing; seed++ {
		ops := o.Language.Generate(seed, o.SequenceLength)
		d, err := r.Run(ops)
		if err != nil {
			return found, err
		}
		sequences++
		for _, op := range ops {
			commands += len(op.Cmds)
		}
		if d == nil {
			continue
		}
		found++
		if err := report(r, o, seed, ops, d); err != nil {
			return found, err
		}
	}
	elapsed := time.Since(start)
	fmt.Fprintf(o.Log, "%d commands in %d sequences from seed %d, %.0f commands/s, %d differences\n",
		commands, sequences, o.Seed, float64(commands)/elapsed.Seconds(), found)
	var reasons []string
	for reason := range r.Known {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(o.Log, "%7d known: %s\n", r.Known[reason], reason)
	}
	return found, nil
}

// report minimises a difference, prints it and writes its file.
func report(r *Runner, o Options, seed uint64, ops []Op, d *Difference) error {
	fmt.Fprintf(o.Log, "seed %d, %d operations: %s\n", seed, len(ops), d.What)
	ops, d, err := r.Minimise(ops, d)
	if err != nil {
		return err
	}
	text, err := r.Transcript(ops, d)
	if err != nil {
		// A transcript is a convenience; the difference stands without it.
		fmt.Fprintf(o.Log, "no transcript: %v\n", err)
	}
	text = fmt.Sprintf("# Seed %d.\n%s", seed, text)
	fmt.Fprintf(o.Log, "minimised to %d operations:\n%s", len(ops), text)
	path := filepath.Join(o.Dir, fmt.Sprintf("difference-%d.txt", seed))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "written to %s\n\n", path)
	return nil
}
