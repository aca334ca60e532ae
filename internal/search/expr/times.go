package expr

import (
	"math"
	"time"

	"github.com/atomredis/atomredis/internal/search/value"
)

// The instants whose years have 32 bits, in seconds.
const (
	firstInstant = -67768040609740800
	lastInstant  = 67768036191676799
)

// instant returns the instant of a number of seconds.
func instant(f float64) (time.Time, bool) {
	if !(f >= firstInstant && f <= lastInstant) {
		return time.Time{}, false
	}
	return time.Unix(int64(f), 0).UTC(), true
}

// ofInstant makes a function of an instant. For other values its result is null.
func ofInstant(of func(time.Time) int64) func([]value.Value) (value.Value, error) {
	return func(args []value.Value) (value.Value, error) {
		f, ok := args[0].ToNumber()
		if !ok || f < 0 {
			return value.Nil, nil
		}
		t, ok := instant(f)
		if !ok {
			return value.Nil, nil
		}
		return value.Num(float64(of(t))), nil
	}
}

// minute is the start of a minute. As in Redis it has no last instant.
func minute(args []value.Value) (value.Value, error) {
	f, ok := args[0].ToNumber()
	if !ok || f < 0 {
		return value.Nil, nil
	}
	return value.Num(math.Floor(f - math.Mod(f, 60))), nil
}

func hour(t time.Time) int64 { return t.Unix() - t.Unix()%3600 }
func day(t time.Time) int64  { return t.Unix() - t.Unix()%86400 }
func month(t time.Time) int64 {
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).Unix()
}
func dayOfMonth(t time.Time) int64  { return int64(t.Day()) }
func dayOfWeek(t time.Time) int64   { return int64(t.Weekday()) }
func dayOfYear(t time.Time) int64   { return int64(t.YearDay() - 1) }
func monthOfYear(t time.Time) int64 { return int64(t.Month() - 1) }
func year(t time.Time) int64        { return int64(t.Year()) }

// timeFormat writes an instant as strftime does. It is null if the result is empty or longer than a kilobyte.
func timeFormat(args []value.Value) (value.Value, error) {
	const most = 1023
	layout := "%FT%TZ"
	if len(args) == 2 {
		if err := must(value.String, "time", args, 1); err != nil {
			return value.Value{}, err
		}
		layout = args[1].Text()
	}
	f, ok := args[0].ToNumber()
	if !ok {
		return value.Nil, nil
	}
	t, ok := instant(math.Trunc(f))
	if !ok {
		return value.Nil, nil
	}
	b := appendTime(nil, t, layout, most)
	if len(b) == 0 || len(b) > most {
		return value.Nil, nil
	}
	return value.Str(string(b)), nil
}

// parseTime reads an instant as strptime does. It is null if the text has another form.
func parseTime(args []value.Value) (value.Value, error) {
	if err := mustText("parsetime", args, 2); err != nil {
		return value.Value{}, err
	}
	p := timeParser{year: 1900, century: -1}
	if _, ok := p.parse(args[0].Text(), args[1].Text()); !ok {
		return value.Nil, nil
	}
	return value.Num(float64(p.seconds())), nil
}
