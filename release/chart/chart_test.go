package chart

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Helm logs that the rules and the dashboard are symbolic links.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

var update = flag.Bool("update", false, "write the golden files again")

const folder = "../../deploy/helm/oda"

// render renders the chart with values, as "helm template archive" does.
func render(values map[string]any) (map[string]string, error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: "archive", Namespace: "observatory", Revision: 1, IsInstall: true}
	complete, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, complete)
}

// valueSets returns the sets of values in testdata, by name.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no sets of values", err)
	}
	sets := map[string]map[string]any{}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sets[strings.TrimSuffix(filepath.Base(file), ".values.yaml")] = values
	}
	return sets
}

// document is a rendered template that is not empty.
type document struct{ template, text string }

func documents(t *testing.T, values map[string]any) []document {
	t.Helper()
	rendered, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	var found []document
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if text := strings.TrimSpace(rendered[name]); text != "" {
			found = append(found, document{strings.TrimPrefix(name, "oda/templates/"), text})
		}
	}
	return found
}

// What the chart makes of each set of values is in testdata. Look at the difference, and
// if it is what you want: go test ./chart -update.
func TestChartRendersAsBefore(t *testing.T) {
	for name, values := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for _, d := range documents(t, values) {
				if d.template != rules && d.template != dashboard { // they have a test of their own
					fmt.Fprintf(&got, "---\n# %s\n%s\n", d.template, d.text)
				}
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-%s +rendered:\n%s", golden, diff)
			}
		})
	}
}

const (
	rules     = "prometheusrule.yaml"
	dashboard = "dashboard.yaml"
)

// The rules and the dashboard are those of deploy, word for word.
func TestChartHasTheRulesAndTheDashboard(t *testing.T) {
	found := map[string]document{}
	for _, d := range documents(t, valueSets(t)["embedded-full"]) {
		found[d.template] = d
	}
	var rule struct{ Spec any }
	var want any
	text, err := os.ReadFile("../../deploy/prometheus/oda.rules.yml")
	if err := errors.Join(err, yaml.Unmarshal(text, &want), yaml.Unmarshal([]byte(found[rules].text), &rule)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, rule.Spec); diff != "" {
		t.Errorf("-oda.rules.yml +rendered:\n%s", diff)
	}
	var config struct{ Data map[string]string }
	text, err = os.ReadFile("../../deploy/grafana/oda.json")
	if err := errors.Join(err, yaml.Unmarshal([]byte(found[dashboard].text), &config)); err != nil {
		t.Fatal(err)
	}
	if got := config.Data["oda.json"]; strings.TrimSpace(got) != strings.TrimSpace(string(text)) {
		t.Errorf("the dashboard is\n%s", got)
	}
}

func TestChartHasNothingThatHelmWarnsOf(t *testing.T) {
	for name, values := range valueSets(t) {
		for _, message := range lint.All(folder, values, "observatory", true).Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// Kubernetes ignores a field that it does not know; here it is an error.
func TestKubernetesKnowsEveryField(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	decoded := map[string]bool{}
	for name, values := range valueSets(t) {
		for _, d := range documents(t, values) {
			if d.template == "NOTES.txt" {
				continue
			}
			text, err := yaml.YAMLToJSONStrict([]byte(d.text))
			if err != nil {
				t.Fatalf("%s, %s: %v", name, d.template, err)
			}
			_, kind, err := decoder.Decode(text, nil, nil)
			switch {
			case err == nil:
				decoded[kind.Kind] = true
			case !runtime.IsNotRegisteredError(err):
				t.Errorf("%s, %s: %v", name, d.template, err)
			case d.template != "servicemonitor.yaml" && d.template != rules:
				t.Errorf("%s, %s: Kubernetes does not know it", name, d.template)
			}
		}
	}
	for _, kind := range []string{"StatefulSet", "Deployment", "Service", "ServiceAccount", "PodDisruptionBudget", "HorizontalPodAutoscaler", "NetworkPolicy", "Ingress"} {
		if !decoded[kind] {
			t.Errorf("no set of values has a %s", kind)
		}
	}
}

func TestChartRefusesWhatCannotWork(t *testing.T) {
	callers := "callers: {insecure: true}\n"
	postgres := callers + "database: {engine: postgres, postgres: {secret: archive}}\n"
	for _, c := range []struct{ what, values, want string }{
		{"nothing", "", "the archive has no way to know who is calling"},
		{"two replicas of a file", callers + "replicas: 2", "more than one replica needs database.engine=postgres"},
		{"autoscaling of a file", callers + "autoscaling: {enabled: true}", "autoscaling needs database.engine=postgres"},
		{"no address of PostgreSQL", callers + "database: {engine: postgres}", "database.postgres.secret is missing"},
		{"a provider without an audience", "callers: {oidc: {issuer: 'https://id.example.org'}}", "callers.oidc.issuer needs callers.oidc.audience"},
		{"an audience without a provider", callers + "tls: {}\ncallers: {insecure: true, oidc: {audience: oda}}", "callers.oidc needs an issuer"},
		{"a client without an address", "callers: {oidc: {issuer: 'https://id.example.org', audience: oda, clientId: oda}}", "callers.oidc.clientId needs callers.oidc.publicUrl"},
		{"a secret of no client", "callers: {insecure: true, oidc: {clientSecret: {secret: oidc}}}", "callers.oidc.clientSecret needs callers.oidc.clientId"},
		{"several pods without a key that they share", "database: {engine: postgres, postgres: {secret: archive}}\ncallers: {oidc: {issuer: 'https://id.example.org', audience: oda, clientId: oda, publicUrl: 'https://archive.example.org'}}", "callers.oidc.sessionKey.secret is missing"},
		{"an ingress without a host", callers + "ingress: {enabled: true}", "ingress.host is missing"},
		{"fewer at most than at least", postgres + "autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 3}", "autoscaling.minReplicas is more than autoscaling.maxReplicas"},

		{"an unknown setting", callers + "replica: 2", "replica"},
		{"an unknown setting deep inside", "callers: {insecure: true, oidc: {audiance: oda}}", "audiance"},
		{"another database", callers + "database: {engine: mysql}", "/database/engine"},
		{"no replicas", postgres + "replicas: 0", "/replicas"},
		{"half a replica", postgres + "replicas: 1.5", "/replicas"},
		{"a word for a switch", "callers: {insecure: 'yes'}", "/callers/insecure"},
		{"a port beyond all ports", callers + "service: {port: 70000}", "/service/port"},
		{"a size without a unit", callers + "database: {embedded: {size: '20'}}", "/database/embedded/size"},
		{"a name that Kubernetes does not allow", callers + "tls: {secret: My_Secret}", "/tls/secret"},
		{"a provider that anyone could pretend to be", "callers: {oidc: {issuer: 'http://id.example.org', audience: oda}}", "/callers/oidc/issuer"},
		{"an argument that is no flag", callers + "extraArgs: [verify]", "/extraArgs/0"},
		{"an unknown level of the log", callers + "log: {level: loud}", "/log/level"},
		{"a probe that is never sent", callers + "probes: {liveness: {periodSeconds: 0}}", "/probes/liveness/periodSeconds"},
		{"a digest that is none", callers + "image: {digest: latest}", "/image/digest"},
		{"a base path without a slash", callers + "basePath: oda", "/basePath"},
	} {
		t.Run(c.what, func(t *testing.T) {
			values, err := chartutil.ReadValues([]byte(c.values))
			if err != nil {
				t.Fatal(err)
			}
			_, err = render(values)
			if err == nil {
				t.Fatal("it was rendered")
			}
			if !strings.Contains(strings.ReplaceAll(err.Error(), ".", "/"), strings.ReplaceAll(c.want, ".", "/")) {
				t.Errorf("it says %q, want %q", err, c.want)
			}
		})
	}
}
