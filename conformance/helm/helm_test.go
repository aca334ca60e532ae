// Package helm renders the Helm chart as Helm does, and checks the result against the server.
package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	_ "github.com/atomredis/atomredis/doors/http"
	_ "github.com/atomredis/atomredis/doors/sentinel"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
	"github.com/atomredis/atomredis/internal/testing/freeport"
	"github.com/atomredis/atomredis/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	chart    = "../../packaging/helm/atomredis"
	release  = "cache"
	name     = release + "-atomredis"
	mounted  = "/etc/atomredis" // the pod's configuration directory
	password = `a"b\ '#é $(HOME)`
)

// values are the values of a chart, which others replace in part.
type values = map[string]any

// sets are values as users specify them.
var sets = map[string]values{
	"the default values with a password": {"auth": values{"password": password}},
	"a secret that exists": {"auth": values{"existingSecret": "theirs", "secretKey": "lines", "password": "unused"},
		"persistence": values{"storageClass": "fast"}, "resources": values{"limits": values{"memory": "1Gi"}}},
	"a service monitor": {"auth": values{"password": password},
		"metrics":      values{"port": 9999, "serviceMonitor": values{"enabled": true}},
		"service":      values{"port": 6380},
		"config":       "save 60 100\nmaxmemory 100mb\n",
		"nodeSelector": values{"disk": "ssd"}, "tolerations": []any{values{"key": "db", "operator": "Exists"}}},
	"a group of three":                 {"auth": values{"password": password}, "replicas": 3},
	"a group with a secret of its own": {"auth": values{"password": password}, "replicas": 3, "group": values{"secret": password}},
	"a group of five with a secret that exists": {"auth": values{"existingSecret": "theirs", "secretKey": "lines"},
		"replicas": 5, "group": values{"port": 7000, "clusterDomain": "example.net"}},
}

// servers returns the number of servers that a set of values asks for.
func servers(with values) int {
	if n, ok := with["replicas"].(int); ok {
		return n
	}
	return 1
}

// readYAML returns a file of the chart.
func readYAML(t *testing.T, file string) (v values) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &v))
	return v
}

// merge replaces values by a user's values: maps in part, others as a whole.
func merge(into, with values) values {
	for k, v := range with {
		inner, isMap := v.(values)
		if old, wasMap := into[k].(values); isMap && wasMap {
			v = merge(old, inner)
		}
		into[k] = v
	}
	return into
}

// functions are the functions that templates have: all but two of sprig's, and those of Helm's own that charts use
// most.
func functions(all *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	execute := func(t *template.Template, data any) (string, error) {
		var out strings.Builder
		err := t.Execute(&out, data)
		return out.String(), err
	}
	f["include"] = func(name string, data any) (string, error) {
		t := all.Lookup(name)
		if t == nil {
			return "", errors.New("there is no template " + name)
		}
		return execute(t, data)
	}
	f["tpl"] = func(text string, data any) (string, error) {
		t, err := template.Must(all.Clone()).New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		return execute(t, data)
	}
	f["toYaml"] = func(v any) (string, error) {
		b, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(b), "\n"), err
	}
	f["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	f["required"] = func(message string, v any) (any, error) {
		if v == nil || v == "" {
			return nil, errors.New(message)
		}
		return v, nil
	}
	return f
}

// render returns the output of the templates for values, by kind. The second Service, by which the servers of a group find
// each other, is "Peers".
func render(t *testing.T, with values) (map[string]values, error) {
	t.Helper()
	about := readYAML(t, "Chart.yaml")
	require.Equal(t, "v2", about["apiVersion"])
	data := values{"Values": merge(readYAML(t, "values.yaml"), with),
		"Release": values{"Name": release, "Namespace": "default", "Service": "Helm"},
		"Chart":   values{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]}}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	files, err := filepath.Glob(chart + "/templates/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	const base = "atomredis/templates"
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = all.New(base + "/" + filepath.Base(file)).Parse(string(content))
		require.NoError(t, err)
	}
	objects := map[string]values{}
	for _, file := range files {
		data["Template"] = values{"Name": base + "/" + filepath.Base(file), "BasePath": base}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, base+"/"+filepath.Base(file), data); err != nil {
			return nil, err
		}
		for in := yaml.NewDecoder(&out); ; {
			var object values
			err := in.Decode(&object)
			if err == io.EOF {
				break
			}
			require.NoError(t, err, "%s:\n%s", file, out.String())
			if object != nil {
				kind := object["kind"].(string)
				if at(object, "spec", "clusterIP") == "None" {
					kind = "Peers"
				}
				require.NotContains(t, objects, kind)
				objects[kind] = object
			}
		}
	}
	return objects, nil
}

// at returns the value at a path of keys, nil if there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := v.(values)
			v = m[key]
		case int:
			list, _ := v.([]any)
			if key >= len(list) {
				return nil
			}
			v = list[key]
		}
	}
	return v
}

// named returns the names of the members of a list.
func named(v any) (names []string) {
	for _, member := range v.([]any) {
		names = append(names, at(member, "name").(string))
	}
	return names
}

// files returns the files in the pod's configuration directory. theirs is a secret that the chart does not create.
func files(t *testing.T, objects map[string]values, theirs values) map[string]string {
	pod := at(objects["StatefulSet"], "spec", "template", "spec")
	found := map[string]string{}
	for _, volume := range at(pod, "volumes").([]any) {
		for _, source := range at(volume, "projected", "sources").([]any) {
			data := theirs
			if secret := at(source, "secret", "name"); secret == at(objects["Secret"], "metadata", "name") {
				data = at(objects["Secret"], "stringData").(values)
			} else {
				require.Equal(t, "theirs", secret)
			}
			for _, item := range at(source, "secret", "items").([]any) {
				require.Contains(t, data, at(item, "key"))
				found[at(item, "path").(string)] = data[at(item, "key").(string)].(string)
			}
		}
	}
	return found
}

// For each set of values, the templates produce consistent objects: names and selectors agree, and all named ports and
// volumes exist.
func TestTheObjectsOfTheChartAgree(t *testing.T) {
	for what, with := range sets {
		t.Run(what, func(t *testing.T) {
			objects, err := render(t, with)
			require.NoError(t, err)
			kinds := []string{"Secret", "Service", "StatefulSet"}
			if at(with, "metrics", "serviceMonitor", "enabled") == true {
				kinds = []string{"Secret", "Service", "ServiceMonitor", "StatefulSet"}
			}
			if servers(with) > 1 {
				kinds = append([]string{"Peers", "PodDisruptionBudget"}, kinds...)
			}
			require.Equal(t, kinds, slices.Sorted(maps.Keys(objects)))
			labels := values{"app.kubernetes.io/name": "atomredis", "app.kubernetes.io/instance": release}
			for kind, object := range objects {
				want := name
				if kind == "Peers" {
					want += "-peers"
				}
				require.Equal(t, want, at(object, "metadata", "name"))
				require.Equal(t, labels, at(object, "metadata", "labels"))
				require.NotEmpty(t, object["apiVersion"])
			}
			set, service := objects["StatefulSet"], objects["Service"]
			require.Equal(t, labels, at(set, "spec", "selector", "matchLabels"))
			require.Equal(t, labels, at(set, "spec", "template", "metadata", "labels"))
			require.Equal(t, servers(with), at(set, "spec", "replicas"))
			require.Equal(t, labels, at(service, "spec", "selector"))
			if peers := objects["Peers"]; peers != nil {
				require.Equal(t, at(peers, "metadata", "name"), at(set, "spec", "serviceName"))
				require.Equal(t, labels, at(peers, "spec", "selector"))
				require.Equal(t, labels, at(objects["PodDisruptionBudget"], "spec", "selector", "matchLabels"))
				require.Equal(t, labels,
					at(set, "spec", "template", "spec", "topologySpreadConstraints", 0, "labelSelector", "matchLabels"))
			} else {
				require.Equal(t, name, at(set, "spec", "serviceName"))
			}

			container := at(set, "spec", "template", "spec", "containers", 0)
			require.Equal(t, "atomredis:0.1.0", at(container, "image"))
			ports := named(at(container, "ports"))
			for _, kind := range []string{"Service", "Peers"} {
				wanted, _ := at(objects[kind], "spec", "ports").([]any)
				for _, port := range wanted {
					require.Contains(t, ports, at(port, "targetPort"))
				}
			}
			volumes := append(named(at(set, "spec", "template", "spec", "volumes")),
				at(set, "spec", "volumeClaimTemplates", 0, "metadata", "name").(string))
			mounts := map[any]any{}
			for _, mount := range at(container, "volumeMounts").([]any) {
				require.Contains(t, volumes, at(mount, "name"))
				mounts[at(mount, "mountPath")] = at(mount, "name")
			}
			require.Equal(t, map[any]any{"/data": "data", mounted: "config"}, mounts)
			require.Equal(t, at(with, "persistence", "storageClass"),
				at(set, "spec", "volumeClaimTemplates", 0, "spec", "storageClassName"))
			for _, key := range []string{"nodeSelector", "tolerations"} {
				if with[key] != nil {
					require.Equal(t, with[key], at(set, "spec", "template", "spec", key))
				}
			}
			if with["resources"] != nil {
				require.Equal(t, with["resources"], at(container, "resources"))
			}
			if monitor := objects["ServiceMonitor"]; monitor != nil {
				require.Equal(t, labels, at(monitor, "spec", "selector", "matchLabels"))
				require.Contains(t, named(at(service, "spec", "ports")), at(monitor, "spec", "endpoints", 0, "port"))
				require.Equal(t, "/metrics", at(monitor, "spec", "endpoints", 0, "path"))
			}
		})
	}
}

// A server accepts the mounted configuration, has the password, and answers at the ports and paths of the probes and of
// Prometheus. Servers of a group become one.
func TestTheServerAnswersAsTheChartSays(t *testing.T) {
	for what, with := range sets {
		t.Run(what, func(t *testing.T) {
			objects, err := render(t, with)
			require.NoError(t, err)
			want := password
			if at(with, "auth", "existingSecret") != nil {
				want = "their own"
			}
			dir := t.TempDir()
			for file, content := range files(t, objects, values{"lines": "requirepass \"their own\"\nraft-secret \"their secret\"\n"}) {
				content = strings.ReplaceAll(content, mounted, dir)
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			container := at(objects["StatefulSet"], "spec", "template", "spec", "containers", 0)
			set := startedAs(t, container, dir, name+"-0")
			require.Equal(t, "/data", set.Files.Dir)
			ports := map[any]any{}
			for _, port := range at(container, "ports").([]any) {
				ports[at(port, "name")] = at(port, "containerPort")
			}
			require.Equal(t, set.Network.Port, ports["redis"])
			_, metrics, _ := strings.Cut(set.Registered["door-http"], ":")
			require.Equal(t, metrics, toString(ports["metrics"]))

			count := servers(with)
			var group, sentinels []string // a group gets addresses of this machine
			if count > 1 {
				require.Equal(t, toString(ports["sentinel"]), set.Registered["sentinel-port"])
				for i := range count {
					group, sentinels = append(group, freeport.Addr(t)), append(sentinels, freeport.Port(t))
					peer := startedAs(t, container, dir, fmt.Sprintf("%s-%d", name, i))
					require.Len(t, peer.Raft.Peers, count)
					require.Equal(t, secretOf(with), peer.Raft.Secret)
					require.Equal(t, peer.Raft.Addr, peer.Raft.Peers[i])
					_, port, _ := strings.Cut(peer.Raft.Addr, ":")
					require.Equal(t, port, toString(ports["raft"]))
				}
			}
			defer http.DefaultClient.CloseIdleConnections()
			var started sync.WaitGroup
			all := make([]*server.Server, count)
			for i := range count {
				args := []string{dir + "/atomredis.conf", "--dir", filepath.Join(dir, "data"+toString(i)), "--port", "0",
					"--unixsocket", filepath.Join(dir, "s"+toString(i)), "--door-http", "127.0.0.1:0"}
				if group != nil {
					args = append(args, "--raft-addr", group[i], "--raft-peers", strings.Join(group, ","), "--sentinel-port", sentinels[i])
				}
				conf := config.NewConfig()
				require.NoError(t, conf.LoadArgs(args))
				srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
				require.NoError(t, err)
				all[i] = srv
				started.Go(func() { require.NoError(t, srv.Start()) })
			}
			started.Wait()
			for i, srv := range all {
				defer func() { require.NoError(t, srv.Close()) }()
				paths := []any{"/metrics"}
				for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
					require.Equal(t, "metrics", at(container, probe, "httpGet", "port"))
					paths = append(paths, at(container, probe, "httpGet", "path"))
				}
				for _, path := range paths {
					require.EventuallyWithT(t, func(t *assert.CollectT) { // a group elects its leader first
						response, err := http.Get("http://" + srv.DoorAddr("http").String() + path.(string))
						require.NoError(t, err)
						body, err := io.ReadAll(response.Body)
						require.NoError(t, err)
						require.NoError(t, response.Body.Close())
						require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
					}, time.Minute, 10*time.Millisecond)
				}
				for password, accepted := range map[string]bool{want: true, "": false, "wrong": false} {
					client := redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(dir, "s"+toString(i)), Password: password})
					require.EventuallyWithT(t, func(t *assert.CollectT) { // a group may elect another leader
						err := client.Set(context.Background(), "key", i, 0).Err()
						require.Equal(t, accepted, err == nil, "%s: %v", password, err)
					}, time.Minute, 10*time.Millisecond)
					require.NoError(t, client.Close())
				}
			}
		})
	}
}

// secretOf returns the raft-secret of a group with these values.
func secretOf(with values) string {
	switch {
	case at(with, "group", "secret") != nil:
		return at(with, "group", "secret").(string)
	case at(with, "auth", "existingSecret") != nil:
		return "their secret"
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(password)))
}

// startedAs returns the settings of the container of a pod, whose mounted directory is dir.
func startedAs(t *testing.T, container any, dir, pod string) *config.Settings {
	t.Helper()
	var args []string
	for _, arg := range at(container, "args").([]any) {
		args = append(args, strings.ReplaceAll(strings.ReplaceAll(arg.(string), mounted, dir), "$(POD_NAME)", pod))
	}
	if env, _ := at(container, "env").([]any); env != nil {
		require.Equal(t, []string{"POD_NAME"}, named(env))
	}
	conf := config.NewConfig()
	require.NoError(t, conf.LoadArgs(args))
	return conf.Get()
}

// toString returns a number as a template prints it.
func toString(v any) string {
	b, _ := yaml.Marshal(v)
	return strings.TrimSpace(string(b))
}

// A pod is replaced if, and only if, its configuration or secrets have changed.
func TestAnotherConfigurationRestartsThePod(t *testing.T) {
	sum := func(with values) any {
		objects, err := render(t, merge(values{"auth": values{"password": "a"}}, with))
		require.NoError(t, err)
		sum := at(objects["StatefulSet"], "spec", "template", "metadata", "annotations", "checksum/config")
		require.Len(t, sum, 64)
		return sum
	}
	first := sum(values{})
	require.Equal(t, first, sum(values{"service": values{"port": 1}}))
	for _, with := range []values{{"auth": values{"password": "b"}}, {"metrics": values{"port": 9122}},
		{"config": "save 1 1"}} {
		require.NotEqual(t, first, sum(with), with)
	}
}

// The servers of the Compose file of a group have the same configuration and know each other by their names.
func TestServersOfTheComposeFileAreAGroup(t *testing.T) {
	content, err := os.ReadFile("../../packaging/compose-group.yaml")
	require.NoError(t, err)
	var file values
	require.NoError(t, yaml.Unmarshal(content, &file))
	lines := at(file, "configs", "group", "content").(string)
	for variable, value := range map[string]string{"${ATOMREDIS_PASSWORD:?set a password}": "password",
		"${ATOMREDIS_RAFT_SECRET:?set a secret}": "secret"} {
		require.Contains(t, lines, variable)
		lines = strings.ReplaceAll(lines, variable, value)
	}
	path := filepath.Join(t.TempDir(), "group.conf")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	services := at(file, "services").(values)
	require.Len(t, services, 3)
	for service, object := range services {
		var args []string
		for _, arg := range at(object, "command").([]any) {
			args = append(args, strings.ReplaceAll(arg.(string), "/group.conf", path))
		}
		conf := config.NewConfig()
		require.NoError(t, conf.LoadArgs(args))
		set := conf.Get()
		require.Equal(t, service+":7379", set.Raft.Addr)
		require.Equal(t, "secret", set.Raft.Secret)
		require.Len(t, set.Raft.Peers, len(services))
		require.Contains(t, set.Raft.Peers, set.Raft.Addr)
		require.Equal(t, []any{service + ":/data"}, at(object, "volumes"))
	}
}

// A group has an odd number of servers.
func TestTwoServersAreNoGroup(t *testing.T) {
	_, err := render(t, values{"auth": values{"password": "a"}, "replicas": 2})
	require.ErrorContains(t, err, "replicas must be 1, 3 or 5")
}

// The chart requires a password, and stores none if a secret has it.
func TestWhoHasThePassword(t *testing.T) {
	_, err := render(t, values{})
	require.ErrorContains(t, err, "auth.password or auth.existingSecret is needed")
	objects, err := render(t, sets["a secret that exists"])
	require.NoError(t, err)
	require.Equal(t, []string{"atomredis.conf"},
		slices.Sorted(maps.Keys(at(objects["Secret"], "stringData").(values))))
	require.NotContains(t, at(objects["Secret"], "stringData", "atomredis.conf"), "unused")
	for _, with := range sets {
		objects, err := render(t, with)
		require.NoError(t, err)
		delete(objects, "Secret")
		all, err := yaml.Marshal(objects)
		require.NoError(t, err)
		require.NotContains(t, string(all), "requirepass")
		require.NotContains(t, string(all), "$(HOME)")
	}
}
