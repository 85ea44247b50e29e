// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"

namespace klineage::files {

/// Internal to TomlDocument and TomlTable: our own tree, so that the TOML library stays inside one source
/// file.
struct TomlTable::Node {
    enum class Kind { String, Integer, Float, Boolean, Date, Array, Table };

    Kind kind = Kind::Table;
    std::string text; ///< String: the value; other scalars: as they are written in messages
    std::int64_t integer = 0;
    double real = 0;
    bool boolean = false;
    TextPosition position;
    std::vector<Node> items;                ///< Array: elements; Table: values in the order of the file
    std::vector<std::string> keys;          ///< Table: beside items
    std::vector<TextPosition> keyPositions; ///< Table: beside items

    // What readers asked for: it makes the other keys unknown ones. Not part of the value.
    mutable bool visited = false;
    mutable std::vector<std::string> asked;
};

struct TomlTable::Context {
    enum class Kind { Value, MissingKey, UnknownKey };
    struct Problem {
        Kind kind = Kind::Value;
        TextPosition position;
        const Node *table = nullptr;
        std::string message;
    };

    std::string fileName;
    Node root;
    std::vector<Problem> problems;

    void report(Kind kind, const Node *table, TextPosition position, std::string message)
    {
        // Only the first is shown; the cap bounds the work on hostile input.
        if (problems.size() < 1000)
            problems.push_back({kind, position, table, std::move(message)});
    }
};

/// Parses text into a tree. The only function that knows the TOML library.
[[nodiscard]] Result<TomlTable::Node> parseTomlTree(std::string_view text, const std::string &fileName,
                                                    int firstLine, const TomlLimits &limits);

} // namespace klineage::files
