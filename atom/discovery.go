package atom

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// protocolVersion is the version as elements tell it each other: major.minor as a number.
var protocolVersion, _ = strconv.ParseFloat(Version[:strings.LastIndex(Version, ".")], 64)

// healthcheckSince is the version from which elements answer health checks.
const healthcheckSince = 0.2

// Elements returns the names of all elements, in order.
func (e *Element) Elements(ctx context.Context) ([]string, error) {
	names, err := e.protocol.elements(ctx)
	return names, failed(ctx, "list elements", err)
}

// StreamName names a data stream.
type StreamName struct{ Element, Stream string }

// Streams returns the data streams of an element, or of all elements if the name is empty, in order. Names may
// contain colons, and then "a" may have a stream "b:c" and "a:b" a stream "c" with the same key. Among all streams, a
// key counts for the longest name of an element that exists.
func (e *Element) Streams(ctx context.Context, element string) ([]StreamName, error) {
	names, err := e.protocol.streams(ctx, element)
	return names, failed(ctx, "list streams", err)
}

// VersionInfo is what an element says of itself.
type VersionInfo struct {
	Language string  `msgpack:"language"`
	Version  float64 `msgpack:"version"` // major.minor
}

// ElementVersion asks an element for its language and version. C and C++ elements answer UnsupportedCommand.
func (e *Element) ElementVersion(ctx context.Context, element string) (info VersionInfo, err error) {
	err = e.ask(ctx, element, versionCommand, &info)
	return info, err
}

// CommandList asks an element for the names of its commands, the reserved ones left out.
func (e *Element) CommandList(ctx context.Context, element string) (names []string, err error) {
	err = e.ask(ctx, element, commandListCommand, &names)
	return names, err
}

func (e *Element) ask(ctx context.Context, element, command string, into any) error {
	response, err := e.CommandSend(ctx, element, command, nil, SendOptions{Serialization: Msgpack})
	if err != nil {
		return err
	}
	return response.Data.Decode(into)
}

// Healthcheck asks an element whether it is ready. It returns nil if it is, or if it is of a kind that cannot tell.
func (e *Element) Healthcheck(ctx context.Context, element string) error {
	info, err := e.ElementVersion(ctx, element)
	switch {
	case errors.Is(err, UnsupportedCommand):
		return nil
	case errors.Is(err, NoAck):
		// An element that only publishes runs no command loop. Those of other languages than these need not be waited for.
		language, infoErr := e.protocol.language(ctx, element)
		if infoErr != nil {
			return failed(ctx, fmt.Sprintf("check the health of %q", element), infoErr)
		}
		if language != "" && !answersHealthchecks(language) {
			return nil
		}
		return err
	case err != nil:
		return err
	case !answersHealthchecks(info.Language) || info.Version < healthcheckSince:
		return nil
	}
	_, err = e.CommandSend(ctx, element, healthcheckCommand, nil, SendOptions{})
	return err
}

func answersHealthchecks(language string) bool { return language == Language || language == "Python" }

// WaitForElementsHealthy returns when all the elements are up and healthy, asking again after the interval (0 means
// DefaultRetryInterval). The error when the context ends says which element was not healthy, and why.
func (e *Element) WaitForElementsHealthy(ctx context.Context, elements []string, retryInterval time.Duration) error {
	if retryInterval <= 0 {
		retryInterval = DefaultRetryInterval
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	for {
		var unhealthy error
		for _, element := range elements {
			if unhealthy = e.Healthcheck(ctx, element); unhealthy != nil {
				break
			}
		}
		if unhealthy == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(failed(ctx, "wait for healthy elements", ctx.Err()), unhealthy)
		case <-time.After(retryInterval):
		}
	}
}
