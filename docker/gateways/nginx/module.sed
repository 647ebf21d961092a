# Changes nginx.conf so that the module checks what it can: sed -f module.sed nginx.conf >nginx-with-module.conf
# (docker/gateways/README.md#nginx-with-the-module). Adapt the path of the table. One location for each row of your policy
# that is for keys, with its scopes; a row that is missing here is asked of a node.
/^worker_processes/i\
load_module modules/ngx_http_chatelaine_module.so;
/^http {/a\
    chatelaine_table /run/chatelaine/table.sock; # as --table of the node on this machine
s#"server":"\$upstream_addr"#"checked":"$chatelaine_from",&#
s#auth_request /_check;#chatelaine_check /_check;#
/auth_request_set /d
# The module sets and removes headers on the request itself, for each way to a backend.
/^            proxy_set_header \(X-Auth-\|X-Request-Id\)/d
/^            proxy_set_header \(Connection\|Content-Length\|HTTP2-Settings\) /b
/^            proxy_set_header .* "";/d
/^            # \(A backend needs neither\|Nor another\)/d
s#\$auth_#$chatelaine_#g
# What is set for location / holds in these, too, except for proxy_pass.
/^            proxy_pass https:\/\/\$checked;/i\
            location /v1/patients {\
                chatelaine_scope read=patients:read write=patients:write;\
                proxy_pass https://$checked;\
            }\
            location /v1/exchanges {\
                chatelaine_scope read=exchanges:read write=exchanges:write;\
                proxy_pass https://$checked;\
            }\
            location /v1/webhooks {\
                chatelaine_scope read=webhooks:manage write=webhooks:manage;\
                proxy_pass https://$checked;\
            }\
            location /v1/documents {\
                chatelaine_scope read=none write=documents:write;\
                proxy_pass https://$checked;\
            }\
            location /v1/organisation {\
                chatelaine_scope read=org:manage write=org:manage;\
                proxy_pass https://$checked;\
            }\
            location /v1/sandbox {\
                chatelaine_scope read=sandbox:manage write=sandbox:manage;\
                proxy_pass https://$checked;\
            }
