package atom

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// protocolVersion is the version in the form that elements exchange: major.minor as a number.
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

// Streams returns the data streams of an element, or of all elements if the name is empty, in order. Names may contain
// colons, so the stream "b:c" of "a" and the stream "c" of "a:b" have the same key. The list of all streams assigns
// such a key to the existing element with the longest name.
func (e *Element) Streams(ctx context.Context, element string) ([]StreamName, error) {
	names, err := e.protocol.streams(ctx, element)
	return names, failed(ctx, "list streams", err)
}

// VersionInfo is an element's answer to the command "version".
type VersionInfo struct {
	Language string  `msgpack:"language"`
	Version  float64 `msgpack:"version"` // major.minor
}

// ElementVersion asks an element for its language and version. C and C++ elements answer UnsupportedCommand.
func (e *Element) ElementVersion(ctx context.Context, element string) (info VersionInfo, err error) {
	err = e.ask(ctx, element, versionCommand, &info)
	return info, err
}

// CommandList asks an element for the names of its commands, without the reserved ones.
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

// Healthcheck asks an element whether it is ready. It returns nil if the element is ready, or cannot answer because it
// is of an older version or another language.
func (e *Element) Healthcheck(ctx context.Context, element string) error {
	info, err := e.ElementVersion(ctx, element)
	switch {
	case errors.Is(err, UnsupportedCommand):
		return nil
	case errors.Is(err, NoAck):
		// An element that only publishes runs no command loop. Only elements in these languages can answer a health
		// check.
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

// WaitForElementsHealthy returns when all elements are up and healthy. It asks again after the interval (0 means
// DefaultRetryInterval). If the context ends before, the error names the element that was not healthy, and the reason.
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
