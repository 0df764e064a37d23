"""The baseline: split every line, loop over the fields, match clicks with dictionaries."""


def parse(lines):
    """The SERPs of a yandex-personalized log as tuples, without any check of the input."""
    serps = []
    session = None
    for line in lines:
        fields = line.rstrip(b"\n").split(b"\t")
        if fields[0] != session:
            session, by_id, user, day = fields[0], {}, None, None
        if fields[1] == b"M":
            day, user = int(fields[2]), int(fields[3])
        elif fields[2] == b"C":
            serp = by_id.get(fields[3])
            url = int(fields[4])
            if serp and url in serp[7]:
                k = serp[7].index(url)
                serp[9][k] += 1
                if serp[10][k] is None:
                    serp[10][k] = int(fields[1])
        else:
            items, domains = [], []
            for pair in fields[6:]:
                url, domain = pair.split(b",")
                items.append(int(url))
                domains.append(int(domain))
            serp = (
                int(session), user, day, int(fields[1]), int(fields[3]), int(fields[4]),
                fields[2] == b"T", items, domains, [0] * len(items), [None] * len(items),
            )  # fmt: skip
            by_id[fields[3]] = serp
            serps.append(serp)
    return serps
