//! Members of an ensemble: several sets of values that explain the measurements of one card equally well.
//!
//! A profile has the values of the first member; each `[[member]]` lists the values in which another one
//! differs, by path. What an ensemble agrees on can be predicted; its spread shows what the measurements do not
//! determine.

use super::Profile;
use crate::toml_file::{self, TomlError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Values of a member by path, such as `flash.read_us`.
pub type Member = BTreeMap<String, MemberValue>;

/// A value of a member.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(
    untagged,
    expecting = "the value of a member must be a whole number from 0 to 4294967295, or a list of them"
)]
pub enum MemberValue {
    /// A number.
    Number(u32),
    /// A list of numbers, such as the times to program the pages of a cell.
    List(Vec<u32>),
}

impl Profile {
    /// Returns the members of the ensemble, each as a single profile; for a single profile, that profile.
    ///
    /// # Errors
    /// If a member has an unknown path or an impossible value; error messages start with `name`.
    pub fn members(&self, name: &str) -> Result<Vec<Profile>, TomlError> {
        let mut first = self.clone();
        let others = std::mem::take(&mut first.member);
        let text = first.to_toml()?;
        let mut members = vec![first];
        for (number, values) in (2..).zip(&others) {
            let name = format!("{name}, member {number}");
            let mut table: toml::Table = toml_file::parse(&name, &text)?;
            for (path, value) in values {
                let of_profile = value_at(&mut table, path).ok_or_else(|| {
                    TomlError::of_value(
                        &name,
                        "member",
                        &path,
                        "the path of a value of the profile",
                    )
                })?;
                set(of_profile, value).map_err(|must| TomlError::value(&name, path, &must))?;
            }
            members.push(Profile::from_toml(&name, &toml_file::write(&table)?)?);
        }
        Ok(members)
    }
}

fn value_at<'a>(table: &'a mut toml::Table, path: &str) -> Option<&'a mut toml::Value> {
    let (folder, key) = path.rsplit_once('.')?;
    let mut target = table;
    for name in folder.split('.') {
        target = target.get_mut(name)?.as_table_mut()?;
    }
    target.get_mut(key)
}

/// Replaces a value by one of the same shape; otherwise, returns the shape that it must have.
fn set(of_profile: &mut toml::Value, value: &MemberValue) -> Result<(), String> {
    let number = |number: &u32| toml::Value::Integer((*number).into());
    *of_profile = match (&*of_profile, value) {
        (toml::Value::Integer(_), MemberValue::Number(value)) => number(value),
        (toml::Value::Array(old), MemberValue::List(new)) if old.len() == new.len() => {
            toml::Value::Array(new.iter().map(number).collect())
        }
        (toml::Value::Integer(_), _) => return Err("a number".to_string()),
        (toml::Value::Array(old), _) => {
            return Err(format!("a list of {}, as in the profile", old.len()));
        }
        _ => return Err("left out: members differ in numbers only".to_string()),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(members: &str) -> Result<Profile, TomlError> {
        let text = crate::FIXTURES[0].1.replacen("model = 1\n", "", 1);
        Profile::from_toml("my.toml", &(text + "\n[ftl]\n" + members))
    }

    #[test]
    fn members_differ_from_the_first_in_their_values_only() {
        let profile = profile(
            "[[member]]\n\"flash.read_us\" = 60\n\"flash.program_us\" = [500, 1200]\n\
             [[member]]\n\"ftl.commit_us\" = 9\n",
        )
        .unwrap();
        let members = profile.members("my.toml").unwrap();
        assert_eq!(members.len(), 3);
        assert_eq!(
            (members[0].flash.read_us, members[1].flash.read_us),
            (50, 60)
        );
        assert_eq!(members[1].flash.program_us, [500, 1200]);
        assert_eq!(members[2].ftl().commit_us, 9);
        assert_eq!(members[2].flash, members[0].flash);
        assert!(members.iter().all(|member| member.member.is_empty()));
        let again = Profile::from_toml("again", &profile.to_toml().unwrap()).unwrap();
        assert_eq!(again, profile);
    }

    #[test]
    fn a_list_of_another_length_is_refused() {
        for list in ["[50]", "[0, 50, 9999]", "[0, 50, \"high\"]"] {
            let text = crate::CARDS[0].1;
            let start = text.find("fill_percent = [").unwrap();
            let end = start + text[start..].find(']').unwrap() + 1;
            let changed = text.replace(&text[start..end], &format!("fill_percent = {list}"));
            let error = Profile::from_toml("my.toml", &changed).unwrap_err();
            assert!(error.to_string().starts_with("my.toml, line "), "{error}");
        }
    }

    #[test]
    fn a_single_profile_is_its_only_member() {
        let profile = profile("").unwrap();
        assert_eq!(profile.members("my.toml").unwrap(), [profile]);
    }

    #[test]
    fn a_bad_member_is_refused_with_its_number() {
        let error = |members: &str| profile(members).unwrap_err().to_string();
        assert_eq!(
            error("[[member]]\n\"flash.colour\" = 1\n"),
            "my.toml, member 2: `member` is flash.colour; it must be the path of a value of the profile"
        );
        assert!(
            error("[[member]]\n\"flash.read_us\" = 0\n")
                .starts_with("my.toml, member 2: `flash.read_us` is 0; it must be 1 to")
        );
        assert!(error("[[member]]\n[[member]]\nmodel = 1\n").contains("member 3"));
        for (value, words) in [
            (
                "\"flash.read_us\" = [2]",
                "`flash.read_us` must be a number",
            ),
            (
                "\"ftl.fill_percent\" = [50]",
                "`ftl.fill_percent` must be a list of 2, as in the profile",
            ),
            (
                "\"ftl.fill_percent\" = 50",
                "`ftl.fill_percent` must be a list of 2, as in the profile",
            ),
            (
                "\"ftl.mapping\" = 1",
                "`ftl.mapping` must be left out: members differ in numbers only",
            ),
            (
                "\"ftl.mapping\" = \"page\"",
                "line 57: the value of a member must be a whole number from 0 to 4294967295, or a list of them",
            ),
            (
                "\"flash.planes\" = -2",
                "line 57: the value of a member must be a whole number from 0 to 4294967295, or a list of them",
            ),
        ] {
            let error = error(&format!("[[member]]\n{value}\n"));
            assert!(error.contains(words), "{error}");
        }
    }
}
