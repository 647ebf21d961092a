// Package chatelaine asks a node whether the key of a request is good. Handlers get chatelaine.Of(r).Account.
package chatelaine

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
)

const patience, answerMaxBytes = 2 * time.Second, 65536

var bearer = regexp.MustCompile(`^(?i:Bearer) +([A-Za-z0-9._~+/-]{1,256}={0,2})$`)

type Who struct {
	Account                   string `json:"account_id"`
	Principal                 string `json:"id"`
	Kind, Mode, Code, Message string
	Scopes                    []string
	Valid                     bool
	Status                    int
	Challenge                 string `json:"www_authenticate"`
}

var unknown = Who{Status: 503, Code: "store_unavailable", Message: "Nobody can tell now whether the key is good."}

type whoKey struct{}

// Of returns nil for a request that did not come through Guard.
func Of(r *http.Request) *Who {
	who, _ := r.Context().Value(whoKey{}).(*Who)
	return who
}

func judge(client *http.Client, r *http.Request) (who Who) {
	sent := r.Header.Values("Authorization")
	match := bearer.FindStringSubmatch(strings.Join(sent, ","))
	if len(sent) > 1 || !strings.HasPrefix(r.RequestURI, "/") {
		return Who{Status: 400, Code: "bad_request", Message: "Send Authorization once, and a path that begins with /."}
	} else if match == nil {
		return Who{Status: 401, Code: "missing_credentials", Message: "Send a key.", Challenge: `Bearer realm="api"`}
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	network, _, _ := strings.Cut(host, "%")
	question := map[string]string{"key": match[1], "method": r.Method, "path": r.RequestURI}
	if network != "" { // it is where clients come over a Unix socket
		question["network"] = network
	}
	body, _ := json.Marshal(question)
	request, _ := http.NewRequestWithContext(r.Context(), "POST", "http://node/check/verify", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header["Idempotency-Key"] = nil // not sent: asks again if the node had closed a kept connection
	response, err := client.Do(request)
	if err != nil {
		log.Printf("chatelaine: no verdict: %v", err)
		return unknown
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, answerMaxBytes)).Decode(&who)
	if err != nil || response.StatusCode != 200 || !who.Valid && who.Status < 400 {
		log.Printf("chatelaine: no verdict: the node answered %d", response.StatusCode)
		return unknown
	}
	return who
}

// Guard lets requests pass to next only with a good key. Put it around the mux. socket: /run/chatelaine/check.sock.
func Guard(socket string, next http.Handler) http.Handler {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	} // idle connections end before --idle-timeout-ms (75 s) would end them
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 60 * time.Second, DialContext: dial}
	client := &http.Client{Timeout: patience, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := judge(client, r)
		if who.Valid {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, &who)))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if who.Challenge != "" {
			w.Header().Set("WWW-Authenticate", who.Challenge)
		}
		w.WriteHeader(who.Status)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": who.Code, "message": who.Message}})
	})
}
