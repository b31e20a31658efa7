#!/usr/bin/env bash
# release.sh RELEASE FOLDER ARCH...: gathers in FOLDER, like .build/release, what is published of a
# release: for each architecture the programs as an archive, both images, an SBOM of each in SPDX,
# the chart, and SHA256SUMS of all that. Beside it, in FOLDER-notes.md, are the release's notes, which
# are the head of CHANGELOG.md with links that lead into the repository. RELEASE is the tag, or what git describe says of any other commit.
# Two runs of one commit with one version of Go make the same files, bit by bit. REVISION and CREATED
# are those of image/build.sh.
set -euo pipefail
export LC_ALL=C # in which order files are listed is in the sums

release=$1 out=$2
archs=("${@:3}")
beside=$(dirname "$out")
unset TAG # images and chart have the release's name, so that they belong together

heading=$(awk '/^## / {print $2; exit}' CHANGELOG.md)
if [[ $release =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] && [ "$heading" != "$release" ]; then
	echo "CHANGELOG.md begins with $heading: the commit of the tag must have $release there, and as newTag in conf/kubernetes/base and conf/kubernetes/operator" >&2
	exit 1
fi

# A release says of each key since when it is known: people take out what an older one refuses.
if [[ $release =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] && marked=$(grep -l '"x-since": "unreleased"' conf/*.schema.json conf/helm/enipool/values.schema.json); then
	echo "keys are marked as unreleased in ${marked//$'\n'/, }: the commit of the tag must say $release of them in pkg/config/agentconf/keys.go and pkg/config/operatorconf/keys.go, and have what make keys writes then" >&2
	exit 1
fi

scripts/image/build.sh "$release" "$beside/image" "${archs[@]}"
go run ./scripts/chart -release "$release" -o "$beside/enipool-chart.tgz"

rm -rf "$out" "$out.part"
mkdir -p "$out.part"
for arch in "${archs[@]}"; do
	mkdir "$out.part/enipool"
	cp "$beside/image/$arch"/{enipool,enipool-agent,enipool-operator,enipoolctl} conf/10-enipool*.conflist conf/agent.yaml LICENSE "$out.part/enipool/"
	# What tar would write of this machine and of this minute is no part of a release.
	tar --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$out.part" -c enipool |
		gzip -n -4 >"$out.part/enipool-linux-$arch.tar.gz"
	rm -r "$out.part/enipool"
done
# The layers of an image are compressed already: its archive stays as it is.
cp "$beside"/enipool{,-operator}-image.{tar,spdx.json} "$beside/enipool-chart.tgz" "$out.part/"
sums=$(cd "$out.part" && sha256sum -- *)
echo "$sums" >"$out.part/SHA256SUMS"
# What has new names concerns nobody who begins with a release; the list of all changes is for those who look for one.
awk '/^## / {if (begun) exit; begun = 1; next} /^### (Changes|Commands and flags with new names)$/ {exit} begun' CHANGELOG.md |
	sed "s#](\([^):]*\))#](https://github.com/enipool/enipool/blob/$release/\1)#g" >"$out-notes.md"
mv "$out.part" "$out"
echo "gathered $release in $out: $(cd "$out" && echo *)"
