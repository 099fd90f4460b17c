//! Requests of three kinds, written for this measurement: edits and extractions repeat what they were given,
//! prose does not.

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The given code again, with a change.
    CodeEdit,
    /// Parts of the given text, word for word.
    Extraction,
    /// New text.
    Prose,
}

pub(crate) const KINDS: [(Kind, &str); 3] = [
    (Kind::CodeEdit, "code editing"),
    (Kind::Extraction, "extraction"),
    (Kind::Prose, "prose"),
];

pub(crate) const PROMPTS: [(Kind, &str); 9] = [
    (
        Kind::CodeEdit,
        "Rename the variable `total` to `sum_cents` in this code. Answer with the whole code and nothing else.

```python
def invoice_total(items, tax_rate):
    total = 0
    for item in items:
        price = item[\"price_cents\"]
        quantity = item[\"quantity\"]
        if quantity < 0:
            raise ValueError(\"quantity must not be negative\")
        total += price * quantity
    total += round(total * tax_rate)
    return total
```",
    ),
    (
        Kind::CodeEdit,
        "Write the following file again, exactly as it is, but with the timeout set to 45 seconds.

```ini
[server]
host = localhost
port = 8123
timeout_seconds = 30
max_connections = 64

[storage]
path = /var/lib/ledger
sync = always
keep_days = 14

[log]
level = info
format = text
```",
    ),
    (
        Kind::CodeEdit,
        "Add a comment above each function of this code and give back all of it.

```javascript
function clamp(value, low, high) {
  if (value < low) {
    return low;
  }
  if (value > high) {
    return high;
  }
  return value;
}

function average(values) {
  let sum = 0;
  for (const value of values) {
    sum += value;
  }
  return values.length > 0 ? sum / values.length : 0;
}
```",
    ),
    (
        Kind::Extraction,
        "Copy the second paragraph of this text, word for word.

The ferry to the island leaves twice a day, at half past seven in the morning and at four in the afternoon. Tickets \
are sold on board, and bicycles travel for free.

Between the pier and the lighthouse there is a path of about five kilometres. It follows the coast, passes two small \
beaches and a ruined chapel, and climbs the last hundred metres over stone steps that are slippery after rain. Walkers \
should take water with them, because there is no shop on the way.

The lighthouse opens its doors from May to September. Groups of more than ten people are asked to write a week ahead.",
    ),
    (
        Kind::Extraction,
        "List every e-mail address and order number in these messages, one line for each message.

From: greta.holm@example.com. My order 48213-A arrived without the charger.
From: tomasz.wrobel@example.org. Please cancel order 48377-C before it ships.
From: ines.duarte@example.net. Order 48390-B went to my old address in Porto.
From: kenji.mori@example.com. I was charged twice for order 48402-A last Friday.
From: amara.osei@example.org. Could order 48415-D be delivered after six o'clock?",
    ),
    (
        Kind::Extraction,
        "Quote the sentences of this report that contain a number. Do not change a word.

The bridge was closed for repairs on 3 March. Traffic moved to the southern crossing without much delay. Engineers \
replaced 214 bolts and 18 metres of railing in the first two weeks. Residents complained about noise at night. The work \
cost 1.4 million, which is less than the council had planned. A second inspection found no further damage. The bridge \
opened again on 29 April, and 6,200 cars crossed it on the first day.",
    ),
    (
        Kind::Prose,
        "Write a short story about an old clockmaker who finds a letter inside a clock.",
    ),
    (
        Kind::Prose,
        "Explain to a curious child why the sky is blue during the day and red in the evening.",
    ),
    (
        Kind::Prose,
        "What should someone think about before moving from a large city to a small village? Write a few paragraphs.",
    ),
];
