//! Every field that is decoded of any kind, filled to what the API server takes: found by the types' own descriptions, so that a
//! new field is among them.

use allocation_counter::measure;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value, json};

use super::super::watched::Lean;
use super::super::{
    CsiNode, DaemonSet, Kind, Node, NodeClaim, NodePool, Pod, ResourceSlice, RuleObject, Watched,
};
use super::{claim, csi_node, daemon_set, meta, node, places, pod, pool, rule, slice};

/// About etcd's limit on an object. A build without optimization takes many times as long, so it fills less, but more than any budget.
const LARGEST: usize = if cfg!(debug_assertions) {
    600_000
} else {
    1_500_000
};
/// Names, of which the API server takes no long ones.
const NAMES: [&str; 5] = [
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/spec/nodeName",
];
/// What an object may take while it is decoded.
const MOST: u64 = 32 << 20;

/// A type's description: what it asks a decoder for, noted as an object that has one of everything. It is null where it asks for JSON.
struct Described<'a>(&'a mut Value);

macro_rules! told {
    ($($method:ident: $visit:ident($value:expr);)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            *self.0 = json!($value);
            visitor.$visit($value)
        }
    )+};
}

impl<'de> Deserializer<'de> for Described<'_> {
    type Error = Error;

    told! {
        deserialize_bool: visit_bool(true);
        deserialize_i32: visit_i32(1);
        deserialize_i64: visit_i64(1);
        deserialize_u32: visit_u32(1);
        deserialize_u64: visit_u64(1);
        deserialize_str: visit_str("a");
        deserialize_string: visit_str("a");
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = json!({});
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Raw JSON, which is decoded later.
        serde_json::Deserializer::from_str("null").deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = json!([null]);
        visitor.visit_seq(SeqDeserializer::new(
            [Described(&mut self.0[0])].into_iter(),
        ))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_struct("", &["a"], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let all = fields
            .iter()
            .map(|field| ((*field).to_owned(), Value::Null));
        *self.0 = Value::Object(all.collect());
        let all = self.0.as_object_mut().unwrap().iter_mut();
        visitor.visit_map(MapDeserializer::new(
            all.map(|(key, value)| (key.clone(), Described(value))),
        ))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = json!(variants[0]);
        visitor.visit_enum(variants[0].into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

impl IntoDeserializer<'_, Error> for Described<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Puts what a sample has where the description does not say what is decoded.
fn complete(described: &mut Value, sample: &Value, at: &str) {
    match described {
        Value::Null => {
            assert!(!sample.is_null(), "the sample lacks {at}");
            *described = sample.clone();
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                complete(field, &sample[name.as_str()], &format!("{at}/{name}"));
            }
        }
        Value::Array(elements) => complete(&mut elements[0], &sample[0], &format!("{at}/0")),
        _ => {}
    }
}

/// As much of what is at this place as an object may have.
fn fill(there: &mut Value) {
    let size = there.to_string().len();
    match there {
        Value::String(text) => *text = "x".repeat(LARGEST),
        Value::Array(elements) => *elements = vec![elements[0].clone(); LARGEST / (size - 1)],
        // A map of anything, not a type's fields.
        Value::Object(fields) if fields.len() == 1 => {
            let (key, value) = fields.iter().next().unwrap();
            let all = (0..LARGEST / (size + 4)).map(|it| (format!("{key}-{it}"), value.clone()));
            *fields = all.collect();
        }
        _ => {}
    }
}

fn walk<T: Kind>(sample: &Value) {
    let mut whole = Value::Null;
    Lean::<T>::deserialize(Described(&mut whole)).unwrap();
    complete(&mut whole, sample, "");
    let kind = T::RESOURCE.kind();
    for place in places(&whole)
        .into_iter()
        .filter(|it| !NAMES.contains(&it.as_str()))
    {
        let mut object = whole.clone();
        fill(object.pointer_mut(&place).unwrap());
        let json = object.to_string();
        let mut kept = None;
        let took = measure(|| kept = Some(Watched::<T>::of(&json)));
        let (most, left) = (took.bytes_max, took.bytes_current.unsigned_abs());
        assert!(
            most <= MOST,
            "{kind} {place}: {most} bytes while it is decoded"
        );
        let budget = 2 * T::BUDGET as u64;
        assert!(
            left <= budget,
            "{kind} {place}: {left} bytes are kept, of {budget}"
        );
    }
}

#[test]
fn no_field_takes_more_than_the_budget_of_its_kind() {
    walk::<Node>(&node());
    walk::<Pod>(&pod());
    walk::<CsiNode>(&csi_node());
    walk::<ResourceSlice>(&slice());
    walk::<DaemonSet>(&daemon_set());
    walk::<RuleObject>(&rule());
    walk::<NodeClaim>(&claim());
    walk::<NodePool>(&pool());
}

#[test]
fn what_is_too_long_is_a_name_and_the_place_where_too_much_is() {
    let expression = json!({"key": "a", "operator": "Exists"});
    let terms = json!([{"matchExpressions": vec![expression; 1_000]}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let object =
        json!({"metadata": meta(), "spec": {"template": {"spec": {"affinity": affinity}}}});
    let object = Watched::<DaemonSet>::of(&object.to_string());
    let why = object.clone().read().unwrap_err().to_string();
    assert!(
        why.starts_with("spec.template.spec.affinity.nodeAffinity."),
        "{why}"
    );
    assert!(why.ends_with("more than is read of one object"), "{why}");
    let name = kube::Resource::meta(&object).name.as_deref();
    assert_eq!(name, Some("a"));
}

/// Some ten times what the largest have that people run.
#[test]
fn objects_of_real_clusters_are_far_below_their_budgets() {
    let many =
        |count: usize, entry: &dyn Fn(usize) -> Value| (0..count).map(entry).collect::<Vec<_>>();
    let map = |count: usize, of: &str| {
        let entries =
            (0..count).map(|it| (format!("{of}.example.com/feature-{it}"), json!("a-value")));
        Value::Object(entries.collect())
    };
    let mut large = node();
    large["metadata"]["labels"] = map(1_000, "labels");
    large["metadata"]["annotations"] = map(500, "annotations");
    large["status"]["conditions"] = many(100, &|it| {
        json!({"type": format!("Condition{it}"), "status": "True", "reason": "R", "message": "m".repeat(500)})
    })
    .into();
    large["status"]["images"] = many(500, &|_| json!({"names": ["a".repeat(200)]})).into();
    Watched::<Node>::of(&large.to_string()).read().unwrap();

    let mut large = daemon_set();
    large["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": "x".repeat(200_000)});
    let pod_spec = &mut large["spec"]["template"]["spec"];
    pod_spec["tolerations"] = many(
        50,
        &|it| json!({"key": it.to_string(), "operator": "Exists"}),
    )
    .into();
    pod_spec["containers"] = many(
        30,
        &|it| json!({"name": it.to_string(), "env": map(100, "env")}),
    )
    .into();
    let values = many(150, &|it| json!(format!("m5.{it}xlarge")));
    pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        many(3, &|_| json!({"matchExpressions": [{"key": "type", "operator": "NotIn", "values": values}]})).into();
    Watched::<DaemonSet>::of(&large.to_string()).read().unwrap();
}
