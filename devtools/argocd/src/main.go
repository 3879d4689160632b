// argocd-customization: Argo CD's own code on the customization of a resource: its settings, health checks and actions.
//
//	argocd-customization ARGOCD-CM < REQUESTS
//
// ARGOCD-CM is a patch or manifest of the ConfigMap argocd-cm. Each line of the input is a JSON request
// {"object": {...}, "action": "NAME"}; each line of the output is the JSON answer: the health of the object and its
// actions, or with an action the objects that it makes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
)

const namespace = "argocd"

type request struct {
	Object map[string]any `json:"object"`
	Action string         `json:"action"`
}

type answer struct {
	Health    *health.HealthStatus      `json:"health,omitempty"`
	Actions   []v1alpha1.ResourceAction `json:"actions,omitempty"`
	Resources []lua.ImpactedResource    `json:"resources,omitempty"`
	Error     string                    `json:"error,omitempty"`
}

func main() {
	log.SetFlags(0)
	logrus.SetOutput(io.Discard)
	if len(os.Args) != 2 {
		log.Fatal("usage: argocd-customization ARGOCD-CM < REQUESTS")
	}
	overrides, err := readOverrides(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		given, err := reply(overrides, asked)
		if err != nil {
			given = answer{Error: err.Error()}
		}
		if err := out.Encode(given); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

// readOverrides returns what Argo CD reads from its ConfigMap.
func readOverrides(path string) (map[string]v1alpha1.ResourceOverride, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &configMap); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	configMap.ObjectMeta = metav1.ObjectMeta{
		Name: common.ArgoCDConfigMapName, Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/part-of": "argocd"},
	}
	secret := corev1.Secret{ObjectMeta: configMap.ObjectMeta}
	secret.Name = common.ArgoCDSecretName
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return settings.NewSettingsManager(ctx, fake.NewClientset(&configMap, &secret), namespace).GetResourceOverrides()
}

func reply(overrides map[string]v1alpha1.ResourceOverride, asked request) (answer, error) {
	object := &unstructured.Unstructured{Object: asked.Object}
	vm := lua.VM{ResourceOverrides: overrides}
	if asked.Action != "" {
		action, err := vm.GetResourceAction(object, asked.Action)
		if err != nil {
			return answer{}, err
		}
		made, err := vm.ExecuteResourceAction(object, action.ActionLua, nil)
		return answer{Resources: made}, err
	}
	status, err := health.GetResourceHealth(object, lua.ResourceHealthOverrides(overrides))
	if err != nil {
		return answer{}, err
	}
	scripts, err := vm.GetResourceActionDiscovery(object)
	if err != nil {
		return answer{}, err
	}
	actions, err := vm.ExecuteResourceActionDiscovery(object, scripts)
	return answer{Health: status, Actions: actions}, err
}
