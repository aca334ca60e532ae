package atomredis_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/atomredis/atomredis"
)

// A consumer that begins with "0" gets the present data, and then every change. With the position of the last change it goes on
// after a restart.
func ExampleDB_Changes() {
	dir, err := os.MkdirTemp("", "changes")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := atomredis.Open(atomredis.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.Do(ctx, "SET", "greeting", "hello"); err != nil {
		log.Fatal(err)
	}
	for change, err := range db.Changes(ctx, "0") {
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range change.Commands {
			fmt.Println(c.DB, c.Args)
		}
		if change.Commands[0].Args[0] == "DEL" {
			break
		}
		if _, err := db.Do(ctx, "DEL", "greeting"); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 0 [SET greeting hello]
	// 0 [DEL greeting]
}
