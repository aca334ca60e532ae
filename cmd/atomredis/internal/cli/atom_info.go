package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/atomredis/atomredis/atom"
)

func (a *app) atomInfo() *cobra.Command {
	return &cobra.Command{Use: "info ELEMENT", Short: "describe an element", Args: Arguments(1, 1),
		Example: "  atomredis atom info camera",
		RunE: func(c *cobra.Command, args []string) error {
			info, err := a.elementInfo(c, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(info)
			}
			var rows [][]string
			flatten("", info, &rows)
			return a.table([]string{"field", "value"}, rows)
		}}
}

// elementInfo returns the reply of ATOM.INFO, or on another server the facts that the element's streams contain.
func (a *app) elementInfo(c *cobra.Command, element string) (map[string]any, error) {
	reply, err := a.client.Do(c.Context(), "atom.info", element).Result()
	if err == nil {
		info, ok := stringKeys(reply).(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the server describes the element as %T", reply)
		}
		return info, nil
	}
	if !strings.HasPrefix(err.Error(), "ERR unknown command") {
		return nil, err
	}
	var info map[string]any
	err = a.withElement(c, func(ctx context.Context, e *atom.Element) (err error) {
		info, err = a.infoFromStreams(ctx, e, element)
		return err
	})
	return info, err
}

func (a *app) infoFromStreams(ctx context.Context, e *atom.Element, element string) (map[string]any, error) {
	commands, err := a.streamSize(ctx, "command:"+element)
	if err != nil {
		return nil, err
	}
	responses, err := a.streamSize(ctx, "response:"+element)
	if err != nil {
		return nil, err
	}
	if commands == nil && responses == nil {
		return nil, fmt.Errorf("there is no element %q", element)
	}
	info := map[string]any{"commands": commands, "responses": responses, "language": nil, "version": nil}
	first, err := a.client.XRangeN(ctx, "command:"+element, "-", "+", 1).Result()
	if err != nil {
		return nil, err
	}
	if len(first) > 0 {
		info["language"], info["version"] = first[0].Values["language"], first[0].Values["version"]
	}
	consumers := map[string]any{}
	if commands != nil {
		groups, err := a.client.XInfoGroups(ctx, "command:"+element).Result()
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.Name != "command_consumer_group:"+element {
				continue
			}
			info["pending"] = g.Pending
			all, err := a.client.XInfoConsumers(ctx, "command:"+element, g.Name).Result()
			if err != nil {
				return nil, err
			}
			for _, consumer := range all {
				consumers[consumer.Name] = map[string]any{"pending": consumer.Pending, "idle": consumer.Idle.Milliseconds()}
			}
		}
	}
	info["consumers"] = consumers
	names, err := e.Streams(ctx, element)
	if err != nil {
		return nil, err
	}
	streams := map[string]any{}
	for _, n := range names {
		if streams[n.Stream], err = a.streamSize(ctx, "stream:"+n.Element+":"+n.Stream); err != nil {
			return nil, err
		}
	}
	info["streams"] = streams
	return info, nil
}

// streamSize returns the length and the last ID of a stream, or nil if there is none.
func (a *app) streamSize(ctx context.Context, key string) (any, error) {
	info, err := a.client.XInfoStream(ctx, key).Result()
	var reply redis.Error
	if errors.As(err, &reply) && strings.Contains(err.Error(), "no such key") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"length": info.Length, "last-id": info.LastGeneratedID}, nil
}

// stringKeys converts the maps of a reply into maps that can be encoded as JSON.
func stringKeys(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = stringKeys(v[i])
		}
	case map[any]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[fmt.Sprint(key)] = stringKeys(value)
		}
		return m
	}
	return v
}

// flatten converts a map into rows. Fields of nested maps have the outer names as prefixes.
func flatten(prefix string, info map[string]any, rows *[][]string) {
	names := make([]string, 0, len(info))
	for name := range info {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch v := info[name].(type) {
		case map[string]any:
			flatten(prefix+name+" ", v, rows)
		case nil:
			*rows = append(*rows, []string{prefix + name, ""})
		default:
			*rows = append(*rows, []string{prefix + name, fmt.Sprint(v)})
		}
	}
}
