// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::files {

// Formats have numbers, MAJOR.MINOR: core/files/README.md. The key is 'format', at the root of a TOML file or a JSON record.

struct FormatNumber {
    std::int64_t major = 1;
    std::int64_t minor = 0;

    friend bool operator==(const FormatNumber &, const FormatNumber &) = default;
};

/// "2" or "2.1", without signs and leading zeros, at most 9 digits each; nothing when it is neither.
[[nodiscard]] std::optional<FormatNumber> parseFormatNumber(std::string_view text);

/// Why a document of this format is not read; empty when it is. newestMajor: of those that the reader knows, from 1 on; it knows no minor.
[[nodiscard]] std::string formatProblem(const std::optional<FormatNumber> &format, const std::string &written,
                                        std::int64_t newestMajor = 1);

/// What stands at the head of a file that is written anew.
[[nodiscard]] std::string withFormat(const std::string &toml);

/// Lets readers pass over the keys that a newer minor format brings: while one lives, TomlDocument::finish() and JsonReader::finish() on
/// this thread list such keys here, in the innermost, and report them as unknown ones otherwise. So nothing is passed over that nobody
/// can say. Not copied; for one thread.
class PassedOver
{
public:
    PassedOver();
    ~PassedOver();
    PassedOver(const PassedOver &) = delete;
    PassedOver &operator=(const PassedOver &) = delete;

    struct Key {
        std::vector<std::string> path; ///< the last one is the key; elements of lists are counted from 0
        std::string format;            ///< what the document says of itself
    };
    [[nodiscard]] const std::vector<Key> &keys() const { return m_keys; }

    /// A sentence: "lineage.toml is of format 1.2, which is newer than this program: its keys 'a' and 'state[0].b' are kept and not
    /// understood."; empty without keys.
    [[nodiscard]] std::string sentence(const std::string &who) const;

    /// Hands a key to the innermost of this thread; false when there is none.
    static bool add(Key key);
    [[nodiscard]] static bool isListening();

private:
    PassedOver *m_outer;
    std::vector<Key> m_keys;
};

} // namespace klineage::files
