#!/usr/bin/env bash
# build.sh RELEASE FOLDER ARCH...: builds what conf/image/Containerfile copies into
# FOLDER, like .build/image, and of it the image beside that, .build/enipool-image.tar,
# under the name that conf/kubernetes has; TAG gives it another tag.
set -euo pipefail

release=$1 context=$2
archs=("${@:3}")
out=$(dirname "$context")/enipool-$(basename "$context").tar
reference=github.com/containernetworking/plugins/plugins
export CGO_ENABLED=0

for arch in "${archs[@]}"; do
	mkdir -p "$context/$arch"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -ldflags "-s -w -X main.release=$release" -o "$context/$arch/" ./plugins/...
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -ldflags "-s -w" -o "$context/$arch/" \
		$reference/main/loopback $reference/meta/{portmap,bandwidth}
done
cp LICENSE "$context/"
name=$(awk -v tag="${TAG:-}" '$1 == "-" && $3 ~ /\/enipool$/ {name = $3} $1 == "newTag:" {print name ":" (tag ? tag : $2)}' conf/kubernetes/base/kustomization.yaml)
go run ./scripts/image -context "$context" -version "$release" -arch "$(IFS=, && echo "${archs[*]}")" -name "$name" -o "$out"
