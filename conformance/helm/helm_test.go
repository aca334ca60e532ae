// Package helm renders the Helm chart as Helm does, and checks the result against the server.
package helm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	_ "github.com/atomredis/atomredis/doors/http"
	"github.com/atomredis/atomredis/internal/config"
	_ "github.com/atomredis/atomredis/internal/durable" // storage and groups
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
	f["required"] = func(message string, v any) (any, error) {
		if v == nil || v == "" {
			return nil, errors.New(message)
		}
		return v, nil
	}
	return f
}

// render returns the output of the templates for values, by kind.
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
			require.Equal(t, kinds, slices.Sorted(maps.Keys(objects)))
			labels := values{"app.kubernetes.io/name": "atomredis", "app.kubernetes.io/instance": release}
			for _, object := range objects {
				require.Equal(t, name, at(object, "metadata", "name"))
				require.Equal(t, labels, at(object, "metadata", "labels"))
				require.NotEmpty(t, object["apiVersion"])
			}
			set, service := objects["StatefulSet"], objects["Service"]
			require.Equal(t, labels, at(set, "spec", "selector", "matchLabels"))
			require.Equal(t, labels, at(set, "spec", "template", "metadata", "labels"))
			require.Equal(t, name, at(set, "spec", "serviceName"))
			require.Equal(t, labels, at(service, "spec", "selector"))

			container := at(set, "spec", "template", "spec", "containers", 0)
			require.Equal(t, "atomredis:0.1.0", at(container, "image"))
			ports := named(at(container, "ports"))
			for _, port := range at(service, "spec", "ports").([]any) {
				require.Contains(t, ports, at(port, "targetPort"))
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
// Prometheus.
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
			for file, content := range files(t, objects, values{"lines": "requirepass \"their own\"\n"}) {
				content = strings.ReplaceAll(content, mounted, dir)
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
			}
			container := at(objects["StatefulSet"], "spec", "template", "spec", "containers", 0)
			require.NotContains(t, container, "env")
			require.Equal(t, []any{mounted + "/atomredis.conf"}, at(container, "args"))
			conf := config.NewConfig()
			require.NoError(t, conf.LoadArgs([]string{dir + "/atomredis.conf"}))
			set := conf.Get()
			require.Equal(t, "/data", set.Files.Dir)
			ports := map[any]any{}
			for _, port := range at(container, "ports").([]any) {
				ports[at(port, "name")] = at(port, "containerPort")
			}
			require.Equal(t, set.Network.Port, ports["redis"])
			_, metrics, _ := strings.Cut(set.Registered["door-http"], ":")
			require.Equal(t, metrics, toString(ports["metrics"]))

			socket := filepath.Join(dir, "s")
			conf = config.NewConfig()
			require.NoError(t, conf.LoadArgs([]string{dir + "/atomredis.conf", "--dir", dir, "--port", "0", "--unixsocket",
				socket, "--door-http", "127.0.0.1:0"}))
			srv, err := server.New(conf, slog.New(slog.DiscardHandler), server.Options{})
			require.NoError(t, err)
			require.NoError(t, srv.Start())
			defer func() { require.NoError(t, srv.Close()) }()

			defer http.DefaultClient.CloseIdleConnections()
			paths := []any{"/metrics"}
			for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
				require.Equal(t, "metrics", at(container, probe, "httpGet", "port"))
				paths = append(paths, at(container, probe, "httpGet", "path"))
			}
			for _, path := range paths {
				response, err := http.Get("http://" + srv.DoorAddr("http").String() + path.(string))
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
			}
			for password, accepted := range map[string]bool{want: true, "": false, "wrong": false} {
				client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Password: password})
				require.Equal(t, accepted, client.Ping(context.Background()).Err() == nil, password)
				require.NoError(t, client.Close())
			}
		})
	}
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
