// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace klineage::mcp {

/// A text that a client can read, by its address.
struct Resource {
    std::string uri; ///< "klineage://workload/softmax"
    std::string name;
    std::string title;
    std::string description;
    std::string mimeType; ///< "text/markdown"
};

/// Addresses of one kind: "klineage://workload/{name}".
struct ResourceTemplate {
    std::string uriTemplate;
    std::string name;
    std::string title;
    std::string description;
    std::string mimeType;
};

struct ResourceText {
    std::string mimeType;
    std::string text;
};

struct PromptArgument {
    std::string name;
    std::string description;
    bool isRequired = true;
};

/// What a person starts a conversation with. run gets the arguments that were given, all required ones among them, each at most 1,024
/// bytes; it returns the text of the one message of the user, or sets problem to a sentence.
struct Prompt {
    std::string name;
    std::string title;
    std::string description;
    std::vector<PromptArgument> arguments;
    std::function<std::string(const std::map<std::string, std::string> &arguments, std::string &problem)> run;
};

/// What a server has besides its tools. Functions run in receive() and may read the disk; they may throw.
struct Offers {
    std::function<std::vector<Resource>()> resources;
    std::vector<ResourceTemplate> templates;
    /// The text of an address; nothing when there is none.
    std::function<std::optional<ResourceText>(const std::string &uri)> read;
    std::vector<Prompt> prompts;

    [[nodiscard]] bool hasResources() const { return resources && read; }
};

} // namespace klineage::mcp
