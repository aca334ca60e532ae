package atomredis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
	_ "github.com/atomredis/atomredis/doors/spiderq"
)

func Example() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	db.Do(ctx, "SET", "greeting", "hello")
	reply, err := db.Do(ctx, "GET", "greeting")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text())
	// Output: hello <nil>
}

// Directives of redis.conf: a directive that is given once goes by name; one that may be repeated goes by line.
func ExampleOpen_configLines() {
	db, err := atomredis.Open(atomredis.Options{
		Config:      map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"},
		ConfigLines: []string{"user alice on >secret ~alice:* +@all", "user guest on nopass ~public:* +@read"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	fmt.Println(db.Do(context.Background(), "ACL", "USERS"))
	// Output:
	// 1) "alice"
	// 2) "default"
	// 3) "guest" <nil>
}

// Clients of spiderq connect to the door and find the messages that the program has put into the queue. The program has
// the door because it imports its package: _ "github.com/atomredis/atomredis/doors/spiderq".
func ExampleOpen_doors() {
	db, err := atomredis.Open(atomredis.Options{Doors: map[string]string{"spiderq": "127.0.0.1:0"}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	fmt.Println(db.Do(context.Background(), "SPIDERQ.ADD", "spiderq", "cat", "small"))
	socket, err := net.Dial("tcp", db.DoorAddr("spiderq")) // as ZeroMQ does
	if err != nil {
		log.Fatal(err)
	}
	defer socket.Close()
	greeting := make([]byte, 10)
	_, err = io.ReadFull(socket, greeting)
	fmt.Printf("% x %v\n", greeting, err)
	// Output:
	// ADDED <nil>
	// ff 00 00 00 00 00 00 00 01 7f <nil>
}

// A directory belongs to one server at a time.
func ExampleOpen_inUse() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := atomredis.Open(atomredis.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	_, err = atomredis.Open(atomredis.Options{Dir: dir})
	fmt.Println(errors.Is(err, atomredis.ErrInUse))
	// Output: true
}

// Slices, maps and structs become one argument per element.
func ExampleDB_Do_values() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	type planet struct {
		Name  string `redis:"name"`
		Moons int    `redis:"moons,omitempty"`
	}
	ctx := context.Background()
	fmt.Println(db.Do(ctx, "HSET", "planet:4", planet{"Mars", 2}))
	fmt.Println(db.Do(ctx, "RPUSH", "planets", []string{"Mercury", "Venus"}))
	fmt.Println(db.Do(ctx, "HGETALL", "planet:4")) // as redis-cli shows it
	// Output:
	// (integer) 2 <nil>
	// (integer) 2 <nil>
	// 1# "name" => "Mars"
	// 2# "moons" => "2" <nil>
}

// A client library talks to the server without a port.
func ExampleDB_Dial() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	client := redis.NewClient(&redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return db.Dial(ctx) },
	})
	defer client.Close()
	fmt.Println(client.Incr(context.Background(), "visits").Val())
	// Output: 1
}

func ExampleDB_Do() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	db.Do(ctx, "HSET", "user:1", "name", "Ada", "born", 1815)
	reply, err := db.Do(ctx, "HGETALL", "user:1")
	if err != nil {
		log.Fatal(err)
	}
	user, _ := reply.Map()
	fmt.Println(user["name"].Text())
	fmt.Println(user["born"].Int())

	// Blocking commands wait as long as the context lasts.
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, err = db.Do(soon, "BLPOP", "jobs", 0)
	fmt.Println(err)
	// Output:
	// Ada <nil>
	// 1815 <nil>
	// atomredis: context deadline exceeded
}

func ExampleDB_DoMany() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	replies, err := db.DoMany(context.Background(),
		atomredis.Args{"RPUSH", "planets", "Mercury", "Venus", "Earth"},
		atomredis.Args{"LINDEX", "planets", -1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(replies[1].Text())
	// Output: Earth <nil>
}

// Money moves from one account to another only if there is enough, and no client sees it on the way.
func ExampleDB_Tx() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	db.Do(ctx, "SET", "ada", 100)
	var left *atomredis.Reply
	err = db.Tx(ctx, func(tx *atomredis.Tx) error {
		if err := tx.Watch("ada"); err != nil {
			return err
		}
		reply, err := tx.Query("GET", "ada")
		if err != nil {
			return err
		}
		if balance, _ := reply.Int(); balance < 30 {
			return fmt.Errorf("only %d left", balance)
		}
		left = tx.Do("DECRBY", "ada", 30)
		tx.Do("INCRBY", "bob", 30)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(left.Int())
	// Output: 70 <nil>
}

func ExampleDB_PSubscribe() {
	db, err := atomredis.Open(atomredis.Options{Config: map[string]string{"notify-keyspace-events": "KEA"}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	messages := db.PSubscribe(ctx, "news.*", "__keyspace@0__:counter")
	db.Do(ctx, "PUBLISH", "news.go", "1.26 is out")
	db.Do(ctx, "INCR", "counter")
	db.Do(ctx, "PUBLISH", "news.end", "")
	for m, err := range messages {
		if err != nil {
			log.Fatal(err)
		}
		if m.Channel == "news.end" {
			break
		}
		fmt.Println(m.Channel, m.Payload)
	}
	// Output:
	// news.go 1.26 is out
	// __keyspace@0__:counter incrby
}

func ExampleDB_Subscribe() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	messages := db.Subscribe(ctx, "news")
	db.Do(ctx, "PUBLISH", "news", "1.26 is out")
	for m, err := range messages {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Channel, m.Payload)
		break
	}
	// Output: news 1.26 is out
}

func ExampleDB_Keys() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	db.Do(ctx, "MSET", "user:1", "ada", "user:2", "bob", "other", "x")
	users := 0
	for key, err := range db.Keys(ctx, "user:*") {
		if err != nil {
			log.Fatal(err)
		}
		db.Do(ctx, "EXPIRE", key, 60)
		users++
	}
	fmt.Println(users, "users")
	// Output: 2 users
}

func ExampleReply_scan() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	type user struct {
		Name string `redis:"name"`
		Age  int    `redis:"age"`
	}
	ctx := context.Background()
	db.Do(ctx, "HSET", "user:1", user{"ada", 36}) // HSET user:1 name ada age 36
	reply, err := db.Do(ctx, "HGETALL", "user:1")
	if err != nil {
		log.Fatal(err)
	}
	var u user
	if err := reply.Scan(&u); err != nil {
		log.Fatal(err)
	}
	fmt.Println(u.Name, u.Age)
	// Output: ada 36
}

func ExampleError() {
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	db.Do(ctx, "SET", "k", "v")
	_, err = db.Do(ctx, "LPUSH", "k", "x")
	var reply atomredis.Error
	if errors.As(err, &reply) {
		fmt.Println(reply.Code())
	}
	// Output: WRONGTYPE
}

func ExampleDB_Snapshot() {
	ctx := context.Background()
	db, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.Do(ctx, "SET", "k", "v")
	var image bytes.Buffer
	if err := db.Snapshot(&image); err != nil {
		log.Fatal(err)
	}

	other, err := atomredis.Open(atomredis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer other.Close()
	if err := other.Restore(&image); err != nil {
		log.Fatal(err)
	}
	reply, _ := other.Do(ctx, "GET", "k")
	fmt.Println(reply.Text())
	// Output: v <nil>
}

// In a testing/synctest bubble an hour passes at once, for keys and for blocked clients too.
func TestExampleOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := atomredis.Open(atomredis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.Do(t.Context(), "SET", "session", "x", "EX", 3600)
		time.Sleep(time.Hour)
		if reply, err := db.Do(t.Context(), "EXISTS", "session"); err != nil {
			t.Fatal(err)
		} else if n, _ := reply.Int(); n != 0 {
			t.Error("the session has not expired")
		}
	})
}
