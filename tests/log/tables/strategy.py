"""Rows per result for hypothesis: few searches and items, so that every rule is met."""

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "A", "é", "e\u0301", "7", "07", "x y", 'q"t', "l\nm", ""])
ROW = st.fixed_dictionaries(
    {
        "search_id": st.sampled_from(["s1", "s2", "s3", "4", "", "s1"]),
        "user_id": st.sampled_from(["u", "v", "", "", ""]),
        "query": st.sampled_from(["shoes", "shoes", "shoes", "Shoes", "12", ""]),
        "item": NAMES,
        "position": st.sampled_from(["0", "1", "2", "3", "4", "1.0", "x", "", "-1", "51"]),
        "clicked": st.sampled_from(["0", "0", "1", "2", "true", "", "no", "maybe"]),
        "price": st.sampled_from(["1", "", "9,9"]),
    }
)
ROWS = st.lists(ROW, min_size=1, max_size=40)
ROLES = {
    "search": "search_id",
    "query": "query",
    "item": "item",
    "user": "user_id",
    "position": "position",
    "clicks": "clicked",
}
