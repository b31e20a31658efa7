package browser

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"sync"
)

// View is how a reader looks at a page.
type View struct {
	Width    int  // pixels
	Dark     bool // the theme
	NoScript bool
}

// Tab is a page that is open.
type Tab struct {
	of      *Chromium
	session string

	mu     sync.Mutex
	errors []string
	loaded chan struct{}
}

// Open opens a page and waits until it is loaded. The browser opens one at a time.
func (c *Chromium) Open(url string, v View) *Tab {
	c.t.Helper()
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	c.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	c.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	tab := &Tab{of: c, session: attached.SessionID, loaded: make(chan struct{}, 1)}
	c.mu.Lock()
	c.heard = tab.hear
	c.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		tab.call(domain+".enable", map[string]any{}, nil)
	}
	theme := "light"
	if v.Dark {
		theme = "dark"
	}
	tab.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": 900, "deviceScaleFactor": 1, "mobile": v.Width < 500}, nil)
	tab.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil)
	tab.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": v.NoScript}, nil)
	tab.call("Page.navigate", map[string]any{"url": url}, nil)
	<-tab.loaded
	return tab
}

func (p *Tab) call(method string, params, result any) {
	p.of.t.Helper()
	p.of.call(p.session, method, params, result)
}

// hear notes what the browser reports as wrong: errors and warnings of scripts, of the network, of the policy.
func (p *Tab) hear(session string, m message) {
	if session != p.session {
		return
	}
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.errors = append(p.errors, string(m.Params))
	}
}

// Errors returns what the browser has reported since the last time that it was asked.
func (p *Tab) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.errors
	p.errors = nil
	return list
}

// Eval returns what an expression is in the page, as text. A promise is waited for.
func (p *Tab) Eval(expression string) string {
	p.of.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		p.of.t.Fatalf("%s: %s", expression, e.Exception.Description)
	}
	var text string
	if json.Unmarshal(answer.Result.Value, &text) == nil {
		return text
	}
	return string(answer.Result.Value)
}

// Press presses keys, by their names, one after the other.
func (p *Tab) Press(keys ...string) {
	p.of.t.Helper()
	codes := map[string]int{"Tab": 9, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
	for _, key := range keys {
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			p.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
		}
	}
}

// Text returns what a reader reads of the first element that a selector finds.
func (p *Tab) Text(selector string) string {
	p.of.t.Helper()
	return strings.TrimSpace(p.Eval("(document.querySelector(" + quoted(selector) + ") || {innerText: ''}).innerText"))
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string always can be
	return string(text)
}

// Save writes a picture of the whole page to a file, for people.
func (p *Tab) Save(path string) {
	p.of.t.Helper()
	var shot struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		p.of.t.Fatalf("save picture: %v", err)
	}
}

// Close closes the page.
func (p *Tab) Close() { p.call("Page.close", map[string]any{}, nil) }
