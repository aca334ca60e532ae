package api

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// admitOrigin reports whether a page of the request's origin may use the interface, and sets the headers of CORS. A
// browser sends no origin with images and links; then it says whether another site has the page, unless the connection
// is a plain one to another machine. Programs send neither.
func (a *API) admitOrigin(h http.Header, r *http.Request) bool {
	h.Set("Vary", "Origin")
	listed := a.origins()
	origin := r.Header.Get("Origin")
	if origin == "" {
		site := r.Header.Get("Sec-Fetch-Site")
		return r.Method != http.MethodOptions && (site == "" || site == "none" || site == "same-origin" || slices.Contains(listed, "*"))
	}
	if !slices.Contains(listed, origin) && !slices.Contains(listed, "*") {
		from, err := url.Parse(origin)
		return err == nil && from.Host != "" && from.Host == r.Host
	}
	h.Set("Access-Control-Allow-Origin", origin)
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", allowed)
		h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		h.Set("Access-Control-Max-Age", "600")
	}
	return true
}

// origins returns the listed origins.
func (a *API) origins() []string { return strings.Split(a.Host.Setting("http-api-origins"), ",") }

// CheckOrigins checks the value of http-api-origins: origins such as https://example.org:8443 with commas between them,
// or "*" for all. They must be as browsers send them: in lower case, and without the default port.
func CheckOrigins(value string) error {
	if value == "" {
		return nil
	}
	for origin := range strings.SplitSeq(value, ",") {
		u, err := url.Parse(origin)
		if origin == "*" {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return errors.New("argument must be '*' or origins such as https://example.org, separated by commas")
		}
		if port := u.Port(); strings.ToLower(origin) != origin || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
			return errors.New("origins must be in lower case and without the default port, as browsers send them")
		}
	}
	return nil
}
