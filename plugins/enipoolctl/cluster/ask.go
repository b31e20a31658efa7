package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// Asker reads the pages of the operator that leads.
type Asker struct {
	API  *API
	URL  string // of an operator's pages, "" for those of the operators' pods, through the API server
	Port string // of the pods' pages
}

// errAway: no operator could be asked.
var errAway = errors.New("no operator can be asked")

// Ask reads a page as JSON.
func (k Asker) Ask(ctx context.Context, page string, query url.Values, into any) error {
	if k.URL != "" {
		if at, err := url.Parse(k.URL); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return fmt.Errorf("--operator %s: must be a URL like http://127.0.0.1:%s", cli.Spelled(k.URL), k.Port)
		}
		text, err := fetch(ctx, strings.TrimSuffix(k.URL, "/")+page+"?"+query.Encode())
		return decode(text, err, into)
	}
	pods, err := k.API.ListPods(ctx, "enipool-operator", "")
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("%w: namespace %s has no pod of enipool-operator; where it runs in another, --namespace names that, and --operator its pages where it runs elsewhere", errAway, k.API.Namespace)
	}
	host := k.API.FindLeader(ctx).host()
	slices.SortStableFunc(pods, func(p, q corev1.Pod) int { return trueFirst(p.Spec.NodeName == host, q.Spec.NodeName == host) })
	var refused []string
	unheard := false
	for _, p := range pods {
		if p.Status.Phase != "" && p.Status.Phase != corev1.PodRunning {
			refused = append(refused, fmt.Sprintf("%s is %s", p.Name, p.Status.Phase))
			continue
		}
		text, err := k.API.proxy(ctx, p.Name+":"+k.Port, page, query)
		if err == nil {
			return decode(text, nil, into)
		}
		unheard = unheard || strings.Contains(err.Error(), "reach service")
		refused = append(refused, fmt.Sprintf("%s: %v", p.Name, err))
	}
	if !unheard {
		return fmt.Errorf("%w: %s; `kubectl --namespace %s describe pod %s` and its log say more", errAway, strings.Join(refused, "; "), k.API.Namespace, pods[0].Name)
	}
	// A page on the loopback alone is the default, and answers the API server with a refused connection.
	return fmt.Errorf("%w: %s; where the operators listen on their loopback alone use the component operator-monitoring, or kubectl --namespace %s port-forward %s %s and --operator http://127.0.0.1:%[5]s",
		errAway, strings.Join(refused, "; "), k.API.Namespace, pods[0].Name, k.Port)
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func decode(text []byte, err error, into any) error {
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the operator's answer: %w; an operator of another release may answer otherwise", err)
	}
	return nil
}

// mostRead is how many bytes an answer may have: 5,000 nodes are 5 MB.
const mostRead = 64 << 20

// fetch reads a page at a URL.
func fetch(ctx context.Context, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("--operator: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostRead))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s: %s", errAway, answer.Status, strings.TrimSpace(string(text)))
	}
	return text, nil
}

// proxy reads a page of a pod through the API server.
func (a *API) proxy(ctx context.Context, pod, page string, query url.Values) ([]byte, error) {
	r := a.core.Get().Namespace(a.Namespace).Resource("pods").Name(pod).SubResource("proxy").Suffix(page)
	for name, values := range query {
		for _, value := range values {
			r = r.Param(name, value)
		}
	}
	text, err := r.SetHeader("Accept", "application/json, text/plain").Do(ctx).Raw()
	return text, said(err, text)
}

// said returns an error in the words of who answered: the client hides those of a page behind its own.
func said(err error, text []byte) error {
	var told struct{ Message string }
	if err != nil && json.Unmarshal(text, &told) == nil && told.Message != "" {
		return errors.New(told.Message)
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return err
	}
	for _, c := range answer.Status().Details.Causes {
		if words := strings.TrimSpace(c.Message); c.Type == metav1.CauseTypeUnexpectedServerResponse && words != "" && words != "unknown" {
			return errors.New(words)
		}
	}
	return err
}
