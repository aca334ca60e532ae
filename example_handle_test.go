package atomredis_test

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"strings"

	"github.com/atomredis/atomredis"
)

// A command of the program moves money in one atomic step, and scripts can use it.
func ExampleDB_Handle() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	err = db.Handle(atomredis.Command{
		Name: "bank.transfer", Arity: 4, FirstKey: 1, LastKey: 2, // bank.transfer from to amount
		Do: func(c *atomredis.Ctx) (any, error) {
			balance, err := c.Call("GET", c.Args[1])
			if err != nil {
				return nil, err
			}
			amount, err := strconv.ParseInt(string(c.Args[3]), 10, 64)
			if err != nil || amount <= 0 {
				return nil, atomredis.Error("ERR the amount is not a positive integer")
			}
			if n, _ := balance.Int(); n < amount {
				return nil, atomredis.Error("POOR not enough money")
			}
			received, err := c.Call("INCRBY", c.Args[2], amount) // first, because the other one cannot fail
			if err != nil {
				return nil, err
			}
			if _, err := c.Call("DECRBY", c.Args[1], amount); err != nil {
				return nil, err
			}
			return received, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	db.Do(ctx, "SET", "ada", 100)
	reply, err := db.Do(ctx, "BANK.TRANSFER", "ada", "bob", 70)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Int())
	_, err = db.Do(ctx, "EVAL", "return redis.call('bank.transfer', KEYS[1], KEYS[2], 70)", 2, "ada", "bob")
	fmt.Println(err != nil)
	// Output:
	// 70 <nil>
	// true
}

// A handler may return any value: here a struct, which clients get as a map.
func ExampleCommand_result() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	type size struct {
		Bytes uint64   `redis:"bytes"`
		Words []string `redis:"words"`
	}
	err = db.Handle(atomredis.Command{
		Name: "text.size", Arity: 2, FirstKey: 1, Flags: atomredis.ReadOnly,
		Do: func(c *atomredis.Ctx) (any, error) {
			text, err := c.Call("GET", c.Args[1]) // db.Do would return ErrInHandler
			if err != nil {
				return nil, err
			}
			s, err := text.Text()
			if err != nil {
				return nil, err
			}
			return size{uint64(len(s)), strings.Fields(s)}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	db.Do(ctx, "SET", "greeting", "hello world")
	fmt.Println(db.Do(ctx, "TEXT.SIZE", "greeting"))
	// Output:
	// 1# "bytes" => (integer) 11
	// 2# "words" => 1) "hello"
	//    2) "world" <nil>
}
