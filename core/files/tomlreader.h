// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/position.h"
#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::files {

/// A TOML file is at most this large, unless its reader says otherwise.
inline constexpr std::size_t maxTomlBytes = std::size_t{1} << 20;

/// A string of the file with its place, for values that have a grammar of their own (expressions, arguments).
/// Integers written bare are accepted and arrive as their text.
struct TomlText {
    std::string text;
    TextPosition position;
};

class TomlDocument;

/// A view of one table of a TomlDocument; valid while the document lives; cheap to copy.
///
/// Reading is declarative: every getter returns a harmless value when it fails and leaves the reason in the
/// document, so a parser reads all its keys in a row and asks TomlDocument::finish() once. The keys asked for
/// are the keys that are known: finish() reports all others.
class TomlTable
{
public:
    /// Required values.
    [[nodiscard]] std::string string(const char *key) const;
    [[nodiscard]] std::int64_t integer(const char *key) const;
    [[nodiscard]] double number(const char *key) const; ///< finite; an integer is accepted
    [[nodiscard]] bool boolean(const char *key) const;
    [[nodiscard]] TomlText text(const char *key) const;

    /// Optional values, with what an absent key means.
    [[nodiscard]] std::string string(const char *key, std::string absent) const;
    [[nodiscard]] std::int64_t integer(const char *key, std::int64_t absent) const;
    [[nodiscard]] double number(const char *key, double absent) const;
    [[nodiscard]] bool boolean(const char *key, bool absent) const;
    [[nodiscard]] std::optional<TomlText> optionalText(const char *key) const;

    /// Lists; an absent key is an empty list. Require one with require().
    [[nodiscard]] std::vector<std::string> strings(const char *key) const;
    [[nodiscard]] std::vector<std::int64_t> integers(const char *key) const;
    [[nodiscard]] std::vector<TomlText> texts(const char *key) const;
    /// Names to values, by name: `{ M = 4096, N = 4096 }`.
    [[nodiscard]] std::map<std::string, std::string> stringMap(const char *key) const;
    [[nodiscard]] std::map<std::string, std::int64_t> integerMap(const char *key) const;
    /// Names to tables, in name order: `[card.x]`, `[card.y]`.
    [[nodiscard]] std::vector<std::pair<std::string, TomlTable>> namedTables(const char *key) const;
    /// `[[key]]`, in file order; an absent key is an empty list.
    [[nodiscard]] std::vector<TomlTable> tables(const char *key) const;
    /// `[key]` or `key = { … }`.
    [[nodiscard]] std::optional<TomlTable> table(const char *key) const;

    /// One of a fixed set of words; the message of a failure lists them and suggests the nearest.
    template <typename T>
    [[nodiscard]] T choice(const char *key, const std::vector<std::pair<std::string, T>> &words) const
    {
        const std::size_t index = choiceIndex(key, wordsOf(words), std::nullopt);
        return words[index].second;
    }
    template <typename T>
    [[nodiscard]] T choice(const char *key, const std::vector<std::pair<std::string, T>> &words,
                           T absent) const
    {
        const std::size_t index = choiceIndex(key, wordsOf(words), words.size());
        return index == words.size() ? absent : words[index].second;
    }

    [[nodiscard]] bool has(const char *key) const;
    /// Reports a missing key unless it is there; for lists and tables that must not be left out.
    void require(const char *key) const;
    /// Where the value of a key begins; the table itself when the key is absent.
    [[nodiscard]] TextPosition position(const char *key) const;
    [[nodiscard]] TextPosition position() const; ///< of the table's header or brace

    /// Reports what is wrong with a value, in the reader's own words.
    void fail(const char *key, const std::string &message) const;
    void fail(TextPosition where, const std::string &message) const;

    struct Node; ///< internal
private:
    friend class TomlDocument;
    struct Context;
    TomlTable(const Node *node, Context *context);

    [[nodiscard]] const Node *find(const char *key, bool required) const;
    [[nodiscard]] std::size_t choiceIndex(const char *key, const std::vector<std::string> &words,
                                          std::optional<std::size_t> absent) const;
    template <typename T>
    static std::vector<std::string> wordsOf(const std::vector<std::pair<std::string, T>> &words)
    {
        std::vector<std::string> names;
        for (const auto &word : words)
            names.push_back(word.first);
        return names;
    }

    const Node *m_node;
    Context *m_context;
};

/// Limits on what is read; going over them is an error, not a crash.
struct TomlLimits {
    std::size_t maxBytes = maxTomlBytes;
    int maxNesting = 12;            ///< tables and arrays inside each other
    std::size_t maxItems = 100'000; ///< values in the whole document
};

/// A TOML text read strictly: each problem becomes "file:line:column: what, and what was expected".
///
///     auto document = TomlDocument::parse(text, fileName);
///     if (!document) return tl::unexpected(document.error());
///     const TomlTable root = document->root();
///     Thing thing;
///     thing.name = root.string("name");
///     for (const TomlTable &part : root.tables("part"))
///         thing.parts.push_back({part.string("id"), part.integer("n", 1)});
///     if (Status ok = document->finish(); !ok) return tl::unexpected(ok.error());
class TomlDocument
{
public:
    /// Fails on what is no TOML, or over the limits. firstLine: the line of the file that text begins in.
    [[nodiscard]] static Result<TomlDocument> parse(std::string_view text, const std::string &fileName,
                                                    int firstLine = 1, const TomlLimits &limits = {});
    ~TomlDocument();
    TomlDocument(TomlDocument &&) noexcept;
    TomlDocument &operator=(TomlDocument &&) noexcept;

    [[nodiscard]] TomlTable root() const;
    /// True until something was reported. Lets a parser skip checks that need sound values.
    [[nodiscard]] bool ok() const;
    /// The first problem in the text, unknown keys included; call it when everything has been read.
    [[nodiscard]] Status finish() const;

private:
    explicit TomlDocument(std::unique_ptr<TomlTable::Context> context);
    std::unique_ptr<TomlTable::Context> m_context;
};

} // namespace klineage::files
