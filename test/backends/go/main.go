// A service behind the middleware for net/http: answers with who asked.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"backends/chatelaine"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := chatelaine.Of(r)
		json.NewEncoder(w).Encode(map[string]any{"account": who.Account, "principal": who.Principal, "kind": who.Kind,
			"mode": who.Mode, "scopes": who.Scopes})
	})
	panic(http.Serve(listener, chatelaine.Guard(os.Args[1], answer)))
}
