package atom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atom"
)

// nucleus starts a server for an example. A program would connect a client to its own server.
func nucleus() (client *redis.Client, stop func()) {
	db, err := atomredis.Open(atomredis.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	client = redis.NewClient(&redis.Options{Addr: db.Addr()})
	return client, func() {
		client.Close()
		db.Close()
	}
}

func newElement(ctx context.Context, client redis.UniversalClient, name string) *atom.Element {
	e, err := atom.New(ctx, client, name, atom.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return e
}

func Example() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()

	camera, err := atom.New(ctx, client, "camera", atom.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer camera.Close(ctx)

	if _, err := camera.EntryWrite(ctx, "frames", map[string]any{"width": 640, "data": []byte{0xff, 0xd8}},
		atom.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	entries, err := camera.EntryReadN(ctx, "camera", "frames", 1, atom.Decoding{})
	if err != nil {
		log.Fatal(err)
	}
	var width int
	if err := entries[0].Fields["width"].Decode(&width); err != nil {
		log.Fatal(err)
	}
	fmt.Println(width, entries[0].Fields["data"].Bytes)
	// Output: 640 [255 216]
}

func ExampleElement_CommandSend() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	adder, caller := newElement(ctx, client, "adder"), newElement(ctx, client, "caller")
	defer caller.Close(ctx)
	defer adder.Close(ctx)

	add := func(ctx context.Context, r *atom.Request) (any, error) {
		var numbers []int
		if err := r.Data.Decode(&numbers); err != nil {
			return nil, err
		}
		if len(numbers) == 0 {
			return nil, &atom.UserError{Code: 1, Message: "nothing to add"}
		}
		sum := 0
		for _, n := range numbers {
			sum += n
		}
		return sum, nil
	}
	err := adder.CommandAdd("add", add, atom.CommandOptions{Timeout: 500 * time.Millisecond, Serialization: atom.Msgpack})
	if err != nil {
		log.Fatal(err)
	}
	go adder.CommandLoop(ctx, atom.CommandLoopOptions{Workers: 4}) // until adder is closed

	send := func(command string, numbers ...int) {
		response, err := caller.CommandSend(ctx, "adder", command, numbers, atom.SendOptions{Serialization: atom.Msgpack})
		var failure *atom.Error
		switch {
		case errors.Is(err, atom.NoAck), errors.Is(err, atom.NoResponse):
			fmt.Println("nobody answers")
		case errors.As(err, &failure):
			fmt.Println("code", int(failure.Code), failure.Err)
		case err != nil:
			log.Fatal(err) // the context has ended
		default:
			var sum int
			fmt.Println(response.Data.Decode(&sum), sum)
		}
	}
	send("add", 1, 2, 3)
	send("add")
	send("multiply", 1, 2)
	// Output:
	// <nil> 6
	// code 1001 nothing to add
	// code 6 there is no command "multiply"
}

func ExampleElement_Entries() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	sensor, reader := newElement(ctx, client, "sensor"), newElement(ctx, client, "reader")
	defer sensor.Close(ctx)
	defer reader.Close(ctx)

	for i := range 3 {
		sensor.EntryWrite(ctx, "temperature", map[string]any{"celsius": 20 + i}, atom.WriteOptions{})
	}
	for entry, err := range reader.Entries(ctx, "sensor", "temperature", atom.ReadOptions{After: "0"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Fields["celsius"])
		if entry.Fields["celsius"].String() == "22" {
			break
		}
	}
	// Output:
	// 20
	// 21
	// 22
}

func ExampleElement_EntryReadLoop() {
	client, stop := nucleus()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	robot := newElement(ctx, client, "robot")
	defer robot.Close(context.Background())
	robot.EntryWrite(ctx, "pose", map[string]any{"x": 1}, atom.WriteOptions{})
	robot.EntryWrite(ctx, "battery", map[string]any{"volts": 12}, atom.WriteOptions{})

	show := func(_ context.Context, entry atom.Entry) error {
		fmt.Println(entry.Stream, entry.Fields)
		if entry.Stream == "battery" {
			cancel()
		}
		return nil
	}
	err := robot.EntryReadLoop(ctx, []atom.StreamHandler{
		{Element: "robot", Stream: "pose", After: "0", Handle: show},
		{Element: "robot", Stream: "battery", After: "0", Handle: show},
	}, atom.ReadLoopOptions{})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// pose map[x:1]
	// battery map[volts:12]
	// true
}

func ExampleElement_WaitForElementsHealthy() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	arm, caller := newElement(ctx, client, "arm"), newElement(ctx, client, "caller")
	defer caller.Close(ctx)
	defer arm.Close(ctx)

	arm.HealthcheckSet(func(context.Context) error { return nil })
	go arm.CommandLoop(ctx, atom.CommandLoopOptions{})

	if err := caller.WaitForElementsHealthy(ctx, []string{"arm"}, time.Second); err != nil {
		log.Fatal(err)
	}
	version, err := caller.ElementVersion(ctx, "arm")
	fmt.Println(version, err)
	elements, err := caller.Elements(ctx)
	fmt.Println(elements, err)
	// Output:
	// {Go 1} <nil>
	// [arm caller] <nil>
}

func ExampleElement_ReferenceCreate() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "camera")
	defer e.Close(ctx)

	refs, err := e.ReferenceCreate(ctx, []any{map[string]any{"hello": "world"}},
		atom.ReferenceOptions{Keys: []string{"greeting"}, Serialization: atom.Msgpack, Timeout: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer e.ReferenceDelete(ctx, refs...)
	values, err := e.ReferenceGet(ctx, refs, atom.Decoding{})
	if err != nil {
		log.Fatal(err)
	}
	value, err := values[0].Any()
	fmt.Println(refs[0], value, err)
	// Output: reference:camera:greeting:ser:msgpack map[hello:world] <nil>
}

func ExampleElement_ReferenceCreateFromStream() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	camera, keeper := newElement(ctx, client, "camera"), newElement(ctx, client, "keeper")
	defer camera.Close(ctx)
	defer keeper.Close(ctx)

	id, _ := camera.EntryWrite(ctx, "frames", map[string]any{"left": "L", "right": "R"}, atom.WriteOptions{})
	refs, err := keeper.ReferenceCreateFromStream(ctx, "camera", "frames", id, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.ReferenceDelete(ctx, refs["left"], refs["right"])
	values, err := keeper.ReferenceGet(ctx, []string{refs["left"], refs["right"]}, atom.Decoding{})
	fmt.Println(values, err)
	// Output: [L R] <nil>
}

func ExampleElement_ParameterWrite() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "robot")
	defer e.Close(ctx)

	if _, err := e.ParameterWrite(ctx, "limits", map[string]any{"speed": 1.5},
		atom.ParameterOptions{NoOverride: true}); err != nil {
		log.Fatal(err)
	}
	_, err := e.ParameterWrite(ctx, "limits", map[string]any{"speed": 9}, atom.ParameterOptions{})
	fmt.Println(errors.Is(err, atom.ErrNoOverride))
	fields, err := e.ParameterRead(ctx, "limits", atom.Decoding{})
	fmt.Println(fields, err)
	// Output:
	// true
	// map[speed:1.5] <nil>
}

func ExampleElement_CounterUpdate() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "robot")
	defer e.Close(ctx)

	e.CounterSet(ctx, "laps", 10)
	fmt.Println(e.CounterUpdate(ctx, "laps", -3))
	// Output: 7 <nil>
}

func ExampleElement_SortedSetAdd() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "robot")
	defer e.Close(ctx)

	e.SortedSetAdd(ctx, "scores", "ann", 3)
	e.SortedSetAdd(ctx, "scores", "bob", 1.5)
	fmt.Println(e.SortedSetRange(ctx, "scores", 0, -1, true))
	fmt.Println(e.SortedSetPop(ctx, "scores", false))
	// Output:
	// [{ann 3} {bob 1.5}] <nil>
	// {bob 1.5} <nil>
}

func ExampleElement_PriorityQueue() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "planner")
	defer e.Close(ctx)

	jobs := e.PriorityQueue("jobs", atom.QueueOptions{MaxLen: 100})
	jobs.Put(ctx, "later", 5)
	jobs.Put(ctx, "now", 1)
	item, err := jobs.Get(ctx, time.Second) // waits for an item for a second
	if err != nil {
		log.Fatal(err)
	}
	value, err := item.Value.Any()
	fmt.Println(value, item.Priority, err)

	frames := e.FIFOQueue("frames", atom.QueueOptions{MaxLen: 2})
	for i := range 3 {
		frames.Put(ctx, i) // the third item drops the first
	}
	items, err := frames.GetN(ctx, 10)
	for _, item := range items {
		fmt.Println(item.Value.Any())
	}
	// Output:
	// now 1 <nil>
	// 1 <nil>
	// 2 <nil>
}

func ExampleElement_Log() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e := newElement(ctx, client, "robot")
	defer e.Close(ctx)

	e.Log(ctx, atom.LogWarning, "the battery is low")
	entries, err := e.EntryReadN(ctx, "", "log", 1, atom.Decoding{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(entries[0].Fields["element"], entries[0].Fields["msg"])
	// Output: robot the battery is low
}

// bracketed is a custom serialization.
type bracketed struct{}

func (bracketed) Name() string { return "bracketed" }

func (bracketed) Encode(v any) ([]byte, error) { return fmt.Appendf(nil, "<%v>", v), nil }

func (bracketed) Decode(data []byte, into any) error {
	text, ok := into.(*string)
	if !ok {
		return fmt.Errorf("cannot fill a %T", into)
	}
	*text = string(data[1 : len(data)-1])
	return nil
}

func ExampleCodec() {
	client, stop := nucleus()
	defer stop()
	ctx := context.Background()
	e, err := atom.New(ctx, client, "robot", atom.Options{Codecs: []atom.Codec{bracketed{}}})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close(ctx)

	e.EntryWrite(ctx, "s", map[string]any{"v": 5}, atom.WriteOptions{Serialization: "bracketed"})
	entries, err := e.EntryReadN(ctx, "robot", "s", 1, atom.Decoding{})
	if err != nil {
		log.Fatal(err)
	}
	var text string
	err = entries[0].Fields["v"].Decode(&text)
	fmt.Println(entries[0].Fields["v"], text, err)
	// Output: <5> 5 <nil>
}
