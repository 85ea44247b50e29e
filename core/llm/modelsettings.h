// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/llm/message.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::llm {

/// What goes to the server with each question to a model, unless a person says otherwise.
struct ModelSettings {
    std::string model; ///< exact, or the beginning of names and "*"
    std::optional<double> temperature;
    std::string effort;
    std::string extraBody; ///< as in Request
};

/// models.toml of a person: never a workspace's, which may come from somebody else.
struct OwnModels {
    std::string file;
    /// Asked as servers on this machine are: over http too, with KLINEAGE_LOCAL_API_KEY, free unless it is said that they are not.
    std::vector<std::string> ownHosts;
    std::vector<ModelSettings> models;

    /// The exact name, then the longest beginning; nullptr when none is meant.
    [[nodiscard]] const ModelSettings *find(std::string_view model) const;
};

/// In $XDG_CONFIG_HOME/klineage or ~/.config/klineage; empty when there is no such folder to be named.
[[nodiscard]] std::filesystem::path ownModelsFile();
[[nodiscard]] Result<OwnModels> parseModels(std::string_view text, const std::string &fileName);
/// Of ownModelsFile(); none when there is no such file.
[[nodiscard]] Result<OwnModels> loadModels();

/// The keys of a run's [author] that go to the server: temperature, effort, extra_body.
[[nodiscard]] const std::vector<std::string> &authorKeys();
/// Puts them into a request. InvalidInput, naming the key, when one has a value that it cannot have.
[[nodiscard]] Status applyAuthorKeys(const std::map<std::string, std::string> &author, Request &request);
/// What models.toml says of the model, for the keys that author does not have or has empty.
void addModelSettings(const OwnModels &own, const std::string &model,
                      std::map<std::string, std::string> &author);

} // namespace klineage::llm
